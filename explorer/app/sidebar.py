"""The sidebar: the miniature, the pages by section, and a row of tools.

Streamlit's own navigation would stand above the miniature and unfold all sections at first. So it
is hidden, and the links are drawn here: the section of the current page is unfolded, and the others
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
"""A section with one page is as high as the head of any other."""


def draw_sidebar(
    sections: Mapping[str, Mapping[str, PageRow]],
) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Draw the links to the pages; return the empty containers above and below them.

    They are for the miniature and for the row of tools.
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
    """The container for a section's links: one link alone, or several under the section's name."""
    if len(pages) == 1:
        return st.container(height=LINK_HEIGHT, border=False, vertical_alignment="center")
    head = f"**{section}**" if is_here else section
    # With a key, the browser would keep a section of an earlier page unfolded.
    return st.expander(head, expanded=is_here, type="compact").container(gap="xsmall")
