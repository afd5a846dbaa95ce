"""A kept session as a lesson without tasks: a TOML file that the page Lessons opens as a talk."""

import json
import re
from collections.abc import Mapping, Sequence

from explorer.charts.figure_data import file_name
from explorer.export.kept_view import KeptView
from explorer.lessons.lesson_file import DECIMAL, LONG, MOST_MINUTES, PICTURE
from explorer.text.visible_text import cut

MINUTES = 2
"""Of a view, as a guess of how long it is spoken about."""
MOST_OF_ONE = 60
"""Characters: in one line of the panel there is room for a sentence of so many and the rest."""


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
    """A name that a lesson may have in an address, and a file anywhere."""
    return file_name(title)[:60].strip("-")


def _step(view: KeptView) -> dict[str, object]:
    """Where the view comes from as its text; a number in it is one of its sentence or its model."""
    text = " · ".join(f"{name} `{_code(value)}`" for name, value in view.about.items())
    text = text[:LONG] or "As it was kept."
    step: dict[str, object] = {
        "title": view.title,
        "open": view.address,
        "text": text,
        "see": DECIMAL.findall(text),
    }
    return step | {"notes": PICTURE.sub(_named, view.note)} if view.note else step


def _code(text: str) -> str:
    """Cut, on one line and without what would end it, or would be taken for a picture."""
    line = cut(" ".join(text.replace("`", "'").split()), MOST_OF_ONE)
    return PICTURE.sub(_named, line) or " "


def _named(picture: re.Match[str]) -> str:
    """What begins a picture or an element, so that it begins none."""
    return picture[0].replace("<", "‹").replace("![", "! [")


def _table(fields: Mapping[str, object]) -> str:
    """A JSON string is a TOML string, but for the one letter that JSON leaves as it is."""
    lines = (
        f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007F")
        for name, value in fields.items()
    )
    return "\n".join(lines) + "\n"
