"""Text of others where Streamlit expects Markdown: escaped, on one line."""

import re
from functools import lru_cache

from explorer.text.labels import readable

PUNCTUATION = re.compile(r"[!-+./:-@\[-`{-~]|(?<![A-Za-z])-|-(?![A-Za-z])")
"""All of ASCII but the comma and the hyphen between two letters, which mean nothing in Markdown."""
JOINER = "\u2060"
"""Invisible. It also breaks what Streamlit replaces after Markdown, such as `:smile:`."""


@lru_cache(maxsize=512)
def literal(text: str, longest: int = 80) -> str:
    """The text as a label that means nothing but itself; a line break is shown as ↵."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    plain = " ↵ ".join(line for line in lines if line)
    if len(plain) > longest:
        plain = plain[: longest - 1].rstrip() + "…"
    visible = "".join(c if c.isprintable() else readable(c) for c in plain)
    return PUNCTUATION.sub(lambda mark: f"\\{mark[0]}{JOINER}", visible)
