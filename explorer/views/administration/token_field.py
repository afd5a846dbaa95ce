"""The field for the server's token, which opens the Administration page."""

import streamlit as st

from explorer.app import admin_token, widget_state
from explorer.app.messages import keep_note, take_notes
from explorer.app.reader import network
from explorer.app.session import session

CLOSED = f"This page is closed. To open it, set {admin_token.ADMIN_SETTING} and restart the server."
PROMPT = "This page is for the operator of the server. Type the token that it was started with."
NOT_ADMIN = "This is not the token of this server."
TOO_MANY = (
    f"Too many wrong tokens came from your network, so this one was not read. Try again in "
    f"{admin_token.WAIT} seconds."
)


def let_in_or_stop() -> None:
    """Ask for the token and end the page, unless this reader has typed it before."""
    if session().is_admin:
        return
    if not admin_token.is_set():
        st.text(CLOSED)
        st.stop()
    st.text(PROMPT)
    st.text_input(
        "Token",
        type="password",
        key="admin_token",
        autocomplete="off",
        width=400,
        on_change=_take,
    )
    for sentence in take_notes("administration"):
        st.text(sentence)
    st.stop()


def _take() -> None:
    reader, token = session(), str(widget_state.get("admin_token"))
    widget_state.put("admin_token", "")
    try:
        reader.is_admin = admin_token.is_right(token, network())
        keep_note("administration", "" if reader.is_admin else NOT_ADMIN)
    except admin_token.TooManyTriesError:
        keep_note("administration", TOO_MANY)
