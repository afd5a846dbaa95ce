"""The code panels: Python scripts that recompute what is on screen."""

from explorer.snippets.heads_code import Head, MapGroups, head_script, two_heads_script

__all__ = ["Head", "MapGroups", "head_script", "two_heads_script"]
