"""The code panels: Python scripts that recompute what is on screen."""

from explorer.snippets.heads_code import Head, head_script, two_heads_script

__all__ = ["Head", "head_script", "two_heads_script"]
