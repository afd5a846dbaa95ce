"""The sidebar: the miniature, the places by group, and a row of tools.

Streamlit's own navigation would stand above the miniature, so it is hidden, and the links are drawn
here: one for each place, to the first of its pages.
"""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.choosing import carried
from explorer.app.page_table import NAVIGATION, place_of
from explorer.app.session import session

PICTURE_HEIGHT, TOOLS_HEIGHT = 174, 40


def draw_sidebar() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Draw the links to the places; return the empty containers above and below them.

    They are for the miniature and for the row of tools. A link leads to the page of its place that
    is open, or to its first.
    """
    reader = session()
    with st.sidebar:
        picture = st.container(height=PICTURE_HEIGHT, border=False, key="pass_picture")
        under = st.container(gap=None)
        with under.container(gap=None, key="navigation"):
            for group, places in NAVIGATION.items():
                visible = [name for name in places if name not in reader.hidden]
                if group and visible:
                    st.caption(group)
                for name in visible:
                    pages = places[name]
                    page = reader.page if reader.page in pages else next(iter(pages))
                    st.page_link(reader.pages[page], label=name, query_params=carried())
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


def draw_title(title: str) -> None:
    """Draw the title of a page; of one of several views, that of its place and links to all."""
    reader = session()
    place, rows = place_of(reader.page)
    has_views = len(rows) > 1 and bool(reader.pages)
    st.title(place if has_views else title, anchor=False, width="content")
    if has_views:
        with st.container(horizontal=True, gap=None, width="content", key="views"):
            for name, row in rows.items():
                label = row.view or row.title
                st.page_link(reader.pages[name], label=label, query_params=carried())
