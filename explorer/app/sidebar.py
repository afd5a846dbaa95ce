"""The sidebar: a small picture of the pass, every page by its section, and a row of tools.

Streamlit's own navigation would stand above the picture and unfold all sections at first. So it
is hidden, and the links are drawn here: the section of the current page is unfolded, the others
unfold in the browser, without a run.
"""

from collections.abc import Mapping, Sized

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.choosing import carried
from explorer.app.page_table import PageRow
from explorer.app.session import session

PICTURE_HEIGHT, TOOLS_HEIGHT = 180, 40
LINK_HEIGHT = 30
"""Of a section of one page, as high as the head of any other."""


def draw_sidebar(
    sections: Mapping[str, Mapping[str, PageRow]],
) -> tuple[DeltaGenerator, DeltaGenerator]:
    """The pages of each section, by their names, between two empty places.

    They are those of the picture above them and of the tools under them.
    """
    with st.sidebar:
        picture = st.container(height=PICTURE_HEIGHT, border=False, key="pass_picture")
        under = st.container(gap=None)
        with under.container(gap=None, key="navigation"):
            reader, chosen = session(), carried()
            for section, pages in sections.items():
                if section in reader.hidden:
                    continue
                with _place_of(section, pages, is_here=reader.page in pages):
                    for name, page in pages.items():
                        st.page_link(reader.pages[name], label=page.title, query_params=chosen)
        tools = under.container(
            height=TOOLS_HEIGHT,
            border=False,
            key="tools",
            horizontal=True,
            wrap=False,
            vertical_alignment="center",
            gap="xsmall",
        )
    return picture, tools


def _place_of(section: str, pages: Sized, is_here: bool) -> DeltaGenerator:
    """Where the links of a section stand: one alone, or several under its name."""
    if len(pages) == 1:
        return st.container(height=LINK_HEIGHT, border=False, vertical_alignment="center")
    head = f"**{section}**" if is_here else section
    # Without a key: with one, the browser would hold what was unfolded against another page.
    unfolded = st.expander(head, expanded=is_here, type="compact")
    return unfolded.container(gap="xsmall")
