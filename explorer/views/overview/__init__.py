"""The Overview page: the picture of the whole pass, and the links from it to the other pages."""
