"""The frame of every page: the table of pages, what is chosen once, and the page itself."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # the script's own folder is explorer/, imports start above it
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402

from explorer import session  # noqa: E402
from explorer.turns import turn  # noqa: E402

PAGES = {
    "Look": {
        "start": "At a glance",
        "tokens": "Tokens",
        "learning": "Learning a tokenizer",
        "positions": "Positions",
        "attention": "Attention",
        "heads": "Heads",
        "stages": "Head, step by step",
        "pairs": "Query and key",
        "lens": "Logit lens",
        "walk": "The whole pass",
        "writing": "Writing",
        "decoding": "Decoding",
        "masks": "Masks",
    },
    "Change": {"edits": "Change the pass", "compare": "Compare", "museum": "Museum"},
    "Train": {"train": "Train"},
    "Models": {"checkpoints": "Checkpoints"},
}
HEADINGS = {"Look": "Attention explorer"}
"""The name of the app stands over its first pages, drawn with them: nothing moves."""
SIDEBAR_WIDTH = 320
"""Six layers or heads stand in a row, so twelve are two even ones."""


def page(section: str, name: str) -> st.Page:
    """One page; its address is the name of its file."""
    path = ROOT / "pages" / section.lower() / f"{name}.py"
    title = PAGES[section][name]
    return st.Page(path, title=title, url_path=name, default=name == "start")


def main() -> None:
    st.set_page_config(
        page_title="Attention explorer", layout="wide", initial_sidebar_state=SIDEBAR_WIDTH
    )
    table = {section: {name: page(section, name) for name in PAGES[section]} for section in PAGES}
    headed = {HEADINGS.get(section, section): list(table[section].values()) for section in table}
    chosen = st.navigation(headed, expanded=True)
    st.session_state["_pages"] = {name: p for pages in table.values() for name, p in pages.items()}
    session.draw()
    chosen.run()


with turn():
    main()
