"""The row of tools at the foot of the sidebar: share, present, and the theme."""

from __future__ import annotations

import streamlit as st

from explorer.app import streamlit_patches
from explorer.app.session import session
from explorer.components.presenter import present_button
from explorer.components.tools import theme_switch


def draw_tools() -> None:
    """Draw them in their place; they are the same on every page. A page run alone has none."""
    reader = session()
    place = reader.sidebar_foot
    if place is None:
        return
    with place, streamlit_patches.as_part_of_the_frame():
        draw_share()
        draw_present()
        # Streamlit shows the first page at the root as well.
        theme_switch(["./", *reader.pages], key="theme")


def draw_share() -> None:
    """What others are given: a link, and the pages that were visited."""
    with st.popover("Share", type="tertiary", icon=":material/share:", key="share"):
        st.markdown("The address of this page repeats what it shows.")


def draw_present() -> None:
    """The button of the presenter mode."""
    present_button()
