"""Parts of a screen that several pages share."""
