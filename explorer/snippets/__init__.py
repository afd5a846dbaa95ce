"""The lines of Python that make what is on screen, for whoever wants to run them."""

from explorer.snippets.heads_code import Head, one_head, two_heads

__all__ = ["Head", "one_head", "two_heads"]
