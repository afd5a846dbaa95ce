"""The tokenizers of published folders, opened and used in a process of their own."""
