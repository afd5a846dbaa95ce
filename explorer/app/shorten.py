"""The button that cuts the sentence to what the model has room for; nothing else cuts it."""

from __future__ import annotations

import streamlit as st

from explorer.inference.truncation import Cut


def offer(found: Cut | None, text: str, pair: str) -> None:
    """The button, where it is the sentence at the top of the page that is too long."""
    if found is not None and (found.text, found.pair) == (text, pair):
        st.button(
            "Cut it to fit", icon=":material/content_cut:", key="cut", on_click=_take, args=(found,)
        )


def _take(found: Cut) -> None:
    st.session_state["text"] = found.kept_text
    if found.pair:
        st.session_state["pair"] = found.kept_pair
