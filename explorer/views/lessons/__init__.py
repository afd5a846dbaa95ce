"""Lessons on screen: the panel at the foot of every page, and the list of all of them."""
