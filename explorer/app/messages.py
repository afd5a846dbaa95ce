"""Messages to the reader, shown now or in a later run, and the end of a page that cannot go on.

A message for a later run is a note. A click is answered in the run after it, and a message about an
invalid value stays as long as the default that replaces it:

    keep_note("layer", "“Layer” has no “9” in this model; showing 0.", until=0)
    ...
    draw_notes("layer", picked)  # shows it in each run until something but 0 is picked

Without `until` a note is shown once, where it is first asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import streamlit as st

from explorer.app.session import session, state_of
from explorer.catalog import ModelError
from explorer.inference.forward_pass import ForwardPassError
from explorer.text.checked_text import Cut
from explorer.text.visible_text import literal

Value = TypeVar("Value")

NO_MODEL = (
    "There is no trained model here yet. Train one on the Training page, or make those that "
    "ship with the app: python -m explorer checkpoints."
)
"""What a page says where no model can be opened."""


@dataclass
class Suggestion:
    """Another model that reads the whole sentence of the bar, if there is one."""

    label: str = ""
    choose: Callable[[], None] = lambda: None


def say(sentence: str) -> None:
    """Show a sentence as plain text, since it may hold the reader's own words."""
    with st.container(border=True):
        st.text(sentence)


def or_stop(make: Callable[[], Value]) -> Value:
    """What `make` returns; if it has no model or no forward pass, the page says why and ends."""
    try:
        return make()
    except (ForwardPassError, ModelError) as error:
        say(str(error))
        end_page()


def say_why(error: ForwardPassError, text: str, pair: str) -> None:
    """Say why the sentence of the bar has no forward pass.

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
    """End the page here; the bar still gets its lists of layers and heads."""
    head_alone = session().head_alone
    if head_alone is not None and head_alone.drawn_for is None:
        head_alone.draw_lists()
    st.stop()


def draw_suggestion() -> None:
    """A button to the model that reads the sentence of the bar, if there is one."""
    model = state_of(Suggestion)
    if model.label:
        icon = ":material/arrow_forward:"
        st.button(literal(model.label), icon=icon, key="suggested_model", on_click=model.choose)


def _shorten(cut: Cut) -> None:
    st.session_state["text"] = cut.kept_text
    if cut.pair:
        st.session_state["pair"] = cut.kept_pair


CONTROL = "control "
"""Begins the key of a note beside a control."""
ONCE = object()
"""As `until`: the note is shown once."""


class Notes(dict[str, tuple[object, tuple[str, ...]]]):
    """By key, the choice until which the sentences are shown, and the sentences."""


def keep_note(key: str, *sentences: str, until: object = ONCE) -> None:
    """Keep these sentences under `key`, in place of earlier ones, as long as `until` is chosen."""
    notes = state_of(Notes)
    notes.pop(key, None)
    if any(sentences):
        notes[key] = until, sentences


def take_notes(key: str, chosen: object = ONCE) -> tuple[str, ...]:
    """The sentences that hold for this choice; those for another choice are dropped."""
    notes = state_of(Notes)
    until, sentences = notes.get(key, (chosen, ()))
    if until is ONCE or until != chosen:
        notes.pop(key, None)
    return sentences if until == chosen else ()


def draw_notes(key: str, chosen: object = ONCE) -> None:
    """Show the sentences that hold for this choice."""
    for sentence in take_notes(key, chosen):
        say(sentence)


def kept_notes(key: str) -> tuple[str, ...]:
    """The sentences under this key, whatever is chosen now."""
    return state_of(Notes).get(key, (None, ()))[1]


def drop_notes(start: str) -> None:
    """Drop the notes whose keys start with this."""
    notes = state_of(Notes)
    for key in [key for key in notes if key.startswith(start)]:
        del notes[key]
