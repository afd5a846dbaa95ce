"""Text from a file that anybody may have written: what is no text in it is made visible.

A half character fits into no message and no table; a control character is obeyed by a terminal,
and a direction mark turns the words around it. Every reader of JSON calls `parse_json`.
"""

import json
import re
from typing import Any

MARKS, TURNED = "\u061c\u200e\u200f", "\u2066-\u2068\u202a\u202b"
NO_TEXT = rf"\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{MARKS}\u202a-\u202e\u2066-\u2069\ud800-\udfff"
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
PARTS = re.compile(rf"[{TURNED}][^{NO_TEXT}\n]*[\u2069\u202c]|([{NO_TEXT}])")
"""A part that is turned and turned back, or one character that is no text."""
WRITTEN = re.compile(rf"\\[ubf]|[{NO_TEXT}]")
"""Where the source of a JSON text may hold or name such a character."""


def visible(text: str) -> str:
    """The text with `<U+001B>` for every half character, control character and lone mark.

    A mark of direction stays in a text with right-to-left letters, and so does a part that is
    turned and turned back. Tabs and line ends are text.
    """

    if PARTS.search(text) is None:
        return text
    kept = MARKS if RIGHT_TO_LEFT.search(text) else ""

    def replacement(part: re.Match[str]) -> str:
        return part[0] if not part[1] or part[1] in kept else f"<U+{ord(part[1]):04X}>"

    return PARTS.sub(replacement, text)


def visible_values(values: Any) -> Any:
    """The same of every text and key in these lists and objects."""
    if isinstance(values, str):
        return visible(values)
    if isinstance(values, dict):
        return {visible(name): visible_values(value) for name, value in values.items()}
    return [*map(visible_values, values)] if isinstance(values, list) else values


def parse_json(text: str | bytes, *, exact: bool = False, **hooks: Any) -> Any:
    """The values of a JSON text, in visible characters; ValueError or RecursionError without any.

    With `exact`, for words that are compared with others, such as those of a vocabulary, all
    characters stay as they are, and half a character is a ValueError.
    """
    text = text if isinstance(text, str) else text.decode("utf-8")
    values = json.loads(text, **hooks)
    if not exact:
        return visible_values(values) if WRITTEN.search(text) else values
    if "\\u" in text:
        json.dumps(values, ensure_ascii=False).encode()
    return values
