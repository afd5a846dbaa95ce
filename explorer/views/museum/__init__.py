"""The tutorials' mistakes as exhibits: what each is, and the instruments that show it."""
