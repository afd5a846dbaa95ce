"""Sentences of the app to the reader, and the end of a page that cannot go on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import streamlit as st

from explorer.app.session import session, state_of
from explorer.catalog import ModelError
from explorer.inference.forward_pass import ForwardPassError
from explorer.text.checked_text import Cut
from explorer.text.literal import literal

Made = TypeVar("Made")


@dataclass
class Suggestion:
    """Another model that reads the whole sentence of the bar, if there is one."""

    label: str = ""
    choose: Callable[[], None] = lambda: None


def say(sentence: str) -> None:
    """A sentence that may hold the reader's own words, so it is never read as Markdown."""
    with st.container(border=True):
        st.text(sentence)


def or_stop(make: Callable[[], Made]) -> Made:
    """What `make` gives; where no model or no pass can be made, the page says why and ends."""
    try:
        return make()
    except (ForwardPassError, ModelError) as error:
        say(str(error))
        end_page()


def say_why(error: ForwardPassError, text: str, pair: str) -> None:
    """Why the sentence of the bar has no forward pass.

    If it is too long, a button shortens it; if another model can read it, a button opens that.
    """
    say(str(error))
    with st.container(horizontal=True):
        if error.cut is not None and (error.cut.text, error.cut.pair) == (text, pair):
            st.button(
                "Cut it to fit",
                icon=":material/content_cut:",
                key="cut",
                on_click=_shorten,
                args=(error.cut,),
            )
        if text:
            draw_suggestion()


def end_page() -> NoReturn:
    """The page ends here, without what follows the head; the bar still has its lists."""
    head_alone = session().head_alone
    if head_alone is not None and head_alone.drawn_for is None:
        head_alone.draw_lists()
    st.stop()


def draw_suggestion() -> None:
    """A button to the model that reads the sentence of the bar, if there is one."""
    found = state_of(Suggestion)
    if found.label:
        icon = ":material/arrow_forward:"
        st.button(literal(found.label), icon=icon, key="suggested_model", on_click=found.choose)


def _shorten(cut: Cut) -> None:
    st.session_state["text"] = cut.kept_text
    if cut.pair:
        st.session_state["pair"] = cut.kept_pair
