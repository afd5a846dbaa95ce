"""The Overview page: the picture of the whole pass, and the doors from it to the other pages."""
