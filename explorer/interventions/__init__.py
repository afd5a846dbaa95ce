"""The reader's interventions as plain data, as text, in words, and as edits of the core."""
