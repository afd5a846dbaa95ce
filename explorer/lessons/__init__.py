"""Guided lessons as plain data: a list of addresses with texts, read from TOML and checked.

A step opens an address, explains the page there, and asks the reader to do one thing with a real
control. The address is the whole state of a page, so it also shows when the reader has done it.
`lesson` has the data, `lesson_file` reads and checks it, and `lesson_catalog` lists all lessons.
The files are in `files/`.
"""
