"""Guided lessons as plain data: a list of addresses with words, read from TOML and checked.

A step opens an address, says something about what stands there, and asks for one thing to be
done with a real control. The address is the whole state of a page, so that it also tells when
that has been done. `lesson` has the data, `lesson_file` reads it and finds what is wrong with it,
`lesson_catalog` knows which lessons there are. The files are in `files/`.
"""
