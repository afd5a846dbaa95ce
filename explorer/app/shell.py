"""The frame of every page: the table of pages, what is chosen once, and the page itself."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # the script's own folder is explorer/, imports start above it
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402

from explorer.app import streamlit_patches, url  # noqa: E402
from explorer.app.bar import draw_bar  # noqa: E402
from explorer.app.choosing import follow_door  # noqa: E402
from explorer.app.local_reader import is_local  # noqa: E402
from explorer.app.session import Session, session  # noqa: E402
from explorer.app.throttle import turn  # noqa: E402
from explorer.catalog.uploads import MEGABYTE, largest_upload  # noqa: E402

PAGES = {
    "Overview": {"overview": "Overview"},
    "Input": {
        "tokens": "Tokens",
        "tokenizer_training": "Training a tokenizer",
        "embedding_space": "Embedding space",
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
    "Generation": {"generation": "Generation"},
    "Experiments": {
        "interventions": "Interventions",
        "compare": "Compare",
        "museum": "Museum",
    },
    "Training": {"training": "Training"},
    "Models": {"checkpoints": "Checkpoints"},
}
"""By section: the name of each page's file, which is its address, and its title."""
FIRST_PAGE = "overview"
HEADINGS = {"Overview": "Attention explorer"}
"""The name of the app stands over its first pages, drawn with them: nothing moves."""
SIDEBAR_WIDTH = 256


def make_page(section: str, name: str) -> st.Page:
    """One page; its address is the name of its file."""
    path = ROOT / "pages" / section.lower().replace(" ", "_") / f"{name}.py"
    title = PAGES[section][name]
    return st.Page(path, title=title, url_path=name, default=name == FIRST_PAGE)


def main() -> None:
    reader = session()
    if not reader.navigation:
        make_pages(reader)
        most = largest_upload(is_local()) // MEGABYTE
        reader.upload_megabytes = streamlit_patches.allow_uploads(most)
    # Before the navigation: the browser draws the sidebar with the width that it knows then.
    st.set_page_config(layout="wide", initial_sidebar_state=SIDEBAR_WIDTH)
    chosen = st.navigation(reader.navigation, expanded=True)
    st.set_page_config(page_title=f"{chosen.title} · Attention explorer")
    if chosen.url_path in url.FORMER_PAGES:
        now = reader.pages[url.FORMER_PAGES[chosen.url_path]]
        st.switch_page(now, query_params=url.as_meant(chosen.url_path))
    reader.page = chosen.url_path or FIRST_PAGE
    draw_bar()
    follow_door()
    try:
        chosen.run()
    finally:
        reader.context = None  # the next run makes its own


def make_pages(reader: Session) -> None:
    """All pages by their names and by their sections; made once, since each is looked up on disk.

    They are one reader's: Streamlit notes on a page that it may be run.
    """
    table = {
        section: {name: make_page(section, name) for name in PAGES[section]} for section in PAGES
    }
    reader.pages = {name: each for section in table.values() for name, each in section.items()}
    headed = {HEADINGS.get(section, section): list(table[section].values()) for section in table}
    former = [
        st.Page(lambda: None, title=old, url_path=old, visibility="hidden")
        for old in url.FORMER_PAGES
    ]
    reader.navigation = {**headed, "": former}


with turn():
    main()
