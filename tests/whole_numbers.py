"""A text that a page is said to show, where 0.64 is not found in 0.643 nor in 10.64."""

import re

UNSEEN = dict.fromkeys(map(ord, "\u2060\u2066\u2068\u2069"))
"""Marks that only steer how text is set."""


def stands_in(text: str, page: str) -> bool:
    """Whether the page has this text, with no digit of a number at its ends cut off."""
    begin = r"(?<![\d.,])" if text[0].isdecimal() else ""
    end = r"(?!\d|[.,]\d)" if text[-1].isdecimal() else ""
    return re.search(begin + re.escape(text) + end, page) is not None
