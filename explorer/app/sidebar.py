"""The sidebar: a small picture of the pass, and under it every page by its section.

Streamlit's own navigation would stand above the picture and unfold all sections at first. So it
is hidden, and the links are drawn here: the section of the current page is unfolded, the others
unfold in the browser, without a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Protocol

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.choosing import carried
from explorer.app.session import session

PICTURE_HEIGHT = 200
LINK_HEIGHT = 30
"""Of a section of one page, as high as the head of any other."""


class Titled(Protocol):
    """What the navigation has to know of a page."""

    @property
    def title(self) -> str: ...


def draw_sidebar(sections: Mapping[str, Mapping[str, Titled]]) -> DeltaGenerator:
    """The pages of each section, by their names; the empty place of the picture above them."""
    with st.sidebar:
        picture = st.container(height=PICTURE_HEIGHT, border=False, key="pass_picture")
        with st.container(gap=None, key="navigation"):
            reader, chosen = session(), carried()
            for section, pages in sections.items():
                with _place_of(section, pages, is_here=reader.page in pages):
                    for name, page in pages.items():
                        st.page_link(reader.pages[name], label=page.title, query_params=chosen)
    return picture


def _place_of(section: str, pages: Sized, is_here: bool) -> DeltaGenerator:
    """Where the links of a section stand: one alone, or several under its name."""
    if len(pages) == 1:
        return st.container(height=LINK_HEIGHT, border=False, vertical_alignment="center")
    head = f"**{section}**" if is_here else section
    # Without a key: with one, the browser would hold what was unfolded against another page.
    unfolded = st.expander(head, expanded=is_here, type="compact")
    return unfolded.container(gap="xsmall")
