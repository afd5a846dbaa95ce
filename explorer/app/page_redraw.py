"""The one way for a page to have itself drawn again, with a bound: no page does so without end."""

import streamlit as st

from explorer.app.session import session

MOST_REDRAWS = 5
"""A page that is not drawn to its end so many times in a row is drawn as it is."""


def redraw() -> None:
    """End this run and draw the page again; it returns where no run reached its end for long."""
    reader = session()
    if reader.page:  # a page that is run alone has no frame, which counts
        reader.redraws += 1
        if reader.redraws > MOST_REDRAWS:
            return
    st.rerun()


def is_drawn() -> None:
    """For the frame: the page has been drawn to its end."""
    session().redraws = 0
