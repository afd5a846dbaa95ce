"""The frame of every page: the table of pages, what is chosen once, and the page itself."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # the script's own folder is explorer/, imports start above it
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402

from explorer.app.session import session  # noqa: E402
from explorer.app.sidebar import draw_sidebar  # noqa: E402
from explorer.app.throttle import turn  # noqa: E402

PAGES = {
    "Overview": {"overview": "Overview"},
    "Input": {
        "tokens": "Tokens",
        "tokenizer_training": "Training a tokenizer",
        "positions": "Positions",
    },
    "Attention": {
        "attention": "Attention maps",
        "heads": "Heads",
        "head_steps": "Head, step by step",
        "query_key": "Query and key",
        "masks": "Masks",
    },
    "Forward pass": {"forward_pass": "Forward pass", "logit_lens": "Logit lens"},
    "Generation": {"generate": "Generate", "decoding": "Decoding"},
    "Experiments": {
        "interventions": "Interventions",
        "compare": "Compare",
        "museum": "Museum",
    },
    "Training": {"training": "Training"},
    "Models": {"checkpoints": "Checkpoints"},
}
"""By section: the name of each page's file, which is its address, and its title."""
FORMER_ADDRESSES = {
    "start": "overview",
    "learning": "tokenizer_training",
    "stages": "head_steps",
    "pairs": "query_key",
    "walk": "forward_pass",
    "lens": "logit_lens",
    "writing": "generate",
    "edits": "interventions",
    "train": "training",
}
"""What a link of an earlier version may name: it opens the same page."""
HEADINGS = {"Overview": "Attention explorer"}
"""The name of the app stands over its first pages, drawn with them: nothing moves."""
SIDEBAR_WIDTH = 320
"""Six layers or heads stand in a row, so twelve are two even ones."""


def page(section: str, name: str) -> st.Page:
    """One page; its address is the name of its file."""
    path = ROOT / "pages" / section.lower().replace(" ", "_") / f"{name}.py"
    title = PAGES[section][name]
    return st.Page(path, title=title, url_path=name, default=name == "overview")


def main() -> None:
    st.set_page_config(
        page_title="Attention explorer", layout="wide", initial_sidebar_state=SIDEBAR_WIDTH
    )
    table = {section: {name: page(section, name) for name in PAGES[section]} for section in PAGES}
    headed = {HEADINGS.get(section, section): list(table[section].values()) for section in table}
    pages = {name: each for section in table.values() for name, each in section.items()}
    former = [
        st.Page(lambda: None, title=old, url_path=old, visibility="hidden")
        for old in FORMER_ADDRESSES
    ]
    chosen = st.navigation({**headed, "": former}, expanded=True)
    if chosen.url_path in FORMER_ADDRESSES:
        now = pages[FORMER_ADDRESSES[chosen.url_path]]
        st.switch_page(now, query_params=st.query_params.to_dict())
    session().pages = pages
    draw_sidebar()
    chosen.run()


with turn():
    main()
