"""Edits of a forward pass as plain data: their list, their text in an address, their words."""
