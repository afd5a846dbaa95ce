"""Text from a file that anybody may have written: what is no text in it is made visible.

A half character fits into no message, a terminal obeys a control character, and a mark of direction
turns the words around it.
"""

import json
import re
from typing import Any

MARKS = "\u061c\u200e\u200f"
NO_TEXT = rf"\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{MARKS}\u202a-\u202e\u2066-\u2069\ud800-\udfff"
PARTS = re.compile(rf"[\u2066-\u2068\u202a\u202b][^{NO_TEXT}\n]*[\u2069\u202c]|([{NO_TEXT}])")
"""A part that is turned and turned back, or one character that is no text."""
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


def visible(text: str) -> str:
    """The text with `<U+001B>` for every half or control character and lone mark of direction.

    Marks are not lone in a text with right-to-left letters. Tabs and line ends are text.
    """
    kept = MARKS if PARTS.search(text) and RIGHT_TO_LEFT.search(text) else ""

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

    With `exact`, for names that are compared with others, all characters stay as they are, and
    half a character is a ValueError.
    """
    text = text if isinstance(text, str) else text.decode("utf-8")
    values = json.loads(text, **hooks)
    if exact and "\\u" in text:
        json.dumps(values, ensure_ascii=False).encode()
    return (
        values if exact or not re.search(rf"\\[ubf]|[{NO_TEXT}]", text) else visible_values(values)
    )
