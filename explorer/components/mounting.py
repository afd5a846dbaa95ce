"""Registering a view with Streamlit: its HTML, CSS and JavaScript, read once.

A view is registered when its module is imported, so once per process; Streamlit's
registry takes a lock, and AppTest's new runtimes get the same files again by
themselves.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Protocol

import streamlit as st

from explorer.figures import theme

HERE = Path(__file__).parent


class Mount(Protocol):
    """What Streamlit hands back for a registered view."""

    def __call__(self, **options: Any) -> Any: ...


def register(name: str, html: str, *, shared: bool = True) -> Mount:
    """The view of one folder; everything it needs is sent with it, nothing is fetched."""
    folder = HERE / name
    js = "".join(map(read, sorted(folder.glob("*.js"))))
    css = read(folder / "view.css")
    if shared:
        js = f"const THEME = {theme.as_json()};\n" + read(HERE / "shared.js") + js
        css = read(HERE / "shared.css") + css
    mount: Mount = st.components.v2.component(
        f"explorer_{name}",
        html=html,
        css=slim_css(css),
        js=slim_js(js),
    )
    return mount


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def slim_js(source: str) -> str:
    """The code without indentation, blank lines and lines that are only a comment.

    It travels with every new picture, so what only people read stays here. The views
    hold no text of several lines, so this cannot change what they do.
    """
    lines = (line.strip() for line in source.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"


def slim_css(source: str) -> str:
    """The rules without comments and indentation."""
    source = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    return "\n".join(line.strip() for line in source.splitlines() if line.strip()) + "\n"
