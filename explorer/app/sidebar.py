"""The sidebar: a small picture of the pass, and under it every page by its section.

Streamlit's own navigation would stand above the picture and unfold all sections at first. So it
is hidden, and the links are drawn here: the section of the current page is unfolded, the others
unfold in the browser, without a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.choosing import draw_page_link
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
            for section, pages in sections.items():
                _draw_section(section, pages)
    return picture


def _draw_section(section: str, pages: Mapping[str, Titled]) -> None:
    if len(pages) == 1:
        with st.container(height=LINK_HEIGHT, border=False, vertical_alignment="center"):
            _draw_links(pages)
        return
    is_here = session().page in pages
    head = f"**{section}**" if is_here else section
    # Without a key: with one, the browser would hold what was unfolded against another page.
    with st.expander(head, expanded=is_here, type="compact"), st.container(gap="xsmall"):
        _draw_links(pages)


def _draw_links(pages: Mapping[str, Titled]) -> None:
    for name, page in pages.items():
        draw_page_link(name, page.title, icon=False)
