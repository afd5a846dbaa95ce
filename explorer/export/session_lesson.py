"""A kept session as a lesson without tasks: a TOML file that the page Lessons opens as a talk."""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence

from explorer.export.kept_view import KeptView
from explorer.lessons.lesson_file import DECIMAL, LONG, MOST_MINUTES, PICTURE
from explorer.text.visible_text import cut

MINUTES = 2
"""A guess of how long a presenter speaks about a view."""
MOST_OF_ONE = 60
"""Characters of one value, so that all values fit into one line of the panel."""


def session_toml(title: str, views: Sequence[KeptView]) -> bytes:
    """The file; each step opens the address of a view, and its note is for the presenter."""
    many = f"{len(views)} views" if len(views) > 1 else "One view"
    head: dict[str, object] = {
        "title": title,
        "about": f"{many} that were kept in a session.",
        "minutes": min(MOST_MINUTES, MINUTES * len(views)),
    }
    steps = ("[[steps]]\n" + _table(_step(view)) for view in views)
    return "\n".join([_table(head), *steps]).encode("utf-8", "replace")


def lesson_name(title: str) -> str:
    """A name that a lesson may have in an address: letters without their accents."""
    letters = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:60].strip("-") or "session"


def _step(view: KeptView) -> dict[str, object]:
    """A step whose text is the origin of the view; `see` has the numbers in it."""
    text = " · ".join(f"{name} `{_code(value)}`" for name, value in view.about.items())
    text = text[:LONG] or "As it was kept."
    step: dict[str, object] = {
        "title": view.title,
        "open": view.address,
        "text": text,
        "see": DECIMAL.findall(text),
    }
    return step | {"notes": PICTURE.sub(_break_markup, view.note)} if view.note else step


def _code(text: str) -> str:
    """The text for a code span: cut, on one line, without backquotes and pictures."""
    line = cut(" ".join(text.replace("`", "'").split()), MOST_OF_ONE)
    return PICTURE.sub(_break_markup, line) or " "


def _break_markup(picture: re.Match[str]) -> str:
    """The beginning of a picture or an HTML element, changed so that it begins none."""
    return picture[0].replace("<", "‹").replace("![", "! [")


def _table(fields: Mapping[str, object]) -> str:
    """A TOML table. A JSON string is a TOML string, but JSON does not escape U+007F."""
    lines = (
        f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007F")
        for name, value in fields.items()
    )
    return "\n".join(lines) + "\n"
