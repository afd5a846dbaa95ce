"""A kept session as a lesson without tasks: a TOML file that the page Lessons opens as a talk."""

from __future__ import annotations

import json
from collections.abc import Sequence

from explorer.export.figure_data import file_name
from explorer.export.kept_view import KeptView

MINUTES = 2
"""Of a view, as a guess of how long it is spoken about."""
MOST_MINUTES = 240


def session_toml(title: str, views: Sequence[KeptView]) -> bytes:
    """The file; each step opens the address of a view, and its note is for the presenter."""
    minutes = min(MOST_MINUTES, MINUTES * len(views))
    many = f"{len(views)} views" if len(views) > 1 else "One view"
    head = _table(title=title, about=f"{many} that were kept in a session.", minutes=minutes)
    steps = (
        "[[steps]]\n"
        + _table(title=view.title, open=view.address, text=_text(view), notes=view.note)
        for view in views
    )
    return "\n".join([head, *steps]).encode("utf-8", "replace")


def lesson_file_name(title: str) -> str:
    """A name that a lesson may have in an address."""
    return f"{file_name(title)[:60].strip('-')}.toml"


def _text(view: KeptView) -> str:
    """Where the view comes from, as Markdown that means nothing but itself."""
    said = [f"{name}: `{_code(text)}`" for name, text in view.about.items()]
    return "  \n".join(said)[:MOST_TEXT] or "As it was kept."


MOST_TEXT = 2_000


def _code(text: str) -> str:
    """On one line and without what would end it."""
    return " ".join(text.replace("`", "'").split()) or " "


def _table(**fields: str | int) -> str:
    """A JSON string is a TOML string, but for the one letter that JSON leaves as it is."""
    lines = (
        f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007F")
        for name, value in fields.items()
    )
    return "\n".join(lines) + "\n"
