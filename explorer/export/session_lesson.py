"""A kept session as a lesson without tasks: a TOML file that the page Lessons opens as a talk."""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence

from explorer.export.kept_view import KeptView
from explorer.lessons.lesson_file import LONG, MOST_MINUTES, PICTURE
from explorer.text.visible_text import cut

MINUTES = 2
"""A guess of how long a presenter speaks about a view."""
MOST_OF_ONE = 60
"""Characters of one value, so that all values fit into a line or two of the notes."""


def session_toml(title: str, views: Sequence[KeptView]) -> bytes:
    """The file; each step opens the address of a view, and its note is for the presenter."""
    kept = f"{len(views)} views that were" if len(views) > 1 else "One view that was"
    head: dict[str, object] = {
        "title": title,
        "about": f"{kept} kept in a session.",
        "minutes": min(MOST_MINUTES, MINUTES * len(views)),
    }
    steps = ("[[steps]]\n" + _table(_step(view)) for view in views)
    return "\n".join([_table(head), *steps]).encode("utf-8", "replace")


def lesson_name(title: str) -> str:
    """A name that a lesson may have in an address: letters without their accents."""
    letters = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:60].strip("-") or "session"


def _step(view: KeptView) -> dict[str, object]:
    """A step without a text: the note of the view and its origin are for the presenter alone."""
    origin = " · ".join(f"{name}: {_line(value)}" for name, value in view.about.items())
    notes = PICTURE.sub(_break_markup, "\n\n".join(filter(None, (view.note, origin))))
    return {"title": view.title, "open": view.address, "text": "", "notes": notes[:LONG]}


def _line(text: str) -> str:
    return cut(" ".join(text.split()), MOST_OF_ONE)


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
