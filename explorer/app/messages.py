"""Sentences of the app to the reader, said now or kept, and the end of a page that cannot go on.

A kept sentence is a note: a click is answered in the run after it, and what is wrong with an
address is said as long as what is shown instead:

    keep_note("layer", "“Layer” has no “9” in this model; showing 0.", until=0)
    ...
    draw_notes("layer", picked)  # says it, run after run, until something but 0 is picked

Without `until` a sentence is said once, by whoever asks for it first.
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
    """A sentence that may hold the reader's own words, so it is never read as Markdown."""
    with st.container(border=True):
        st.text(sentence)


def or_stop(make: Callable[[], Value]) -> Value:
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


CONTROL = "control "
"""Begins the key of a note beside a control."""
ONCE = object()
"""Until it was said."""


class Notes(dict[str, tuple[object, tuple[str, ...]]]):
    """By key, until what is chosen the sentences are said, and the sentences."""


def keep_note(key: str, *sentences: str, until: object = ONCE) -> None:
    """Say these, in place of those before, where `key` is asked for and `until` is chosen."""
    kept = state_of(Notes)
    kept.pop(key, None)
    if any(sentences):
        kept[key] = until, sentences


def take_notes(key: str, chosen: object = ONCE) -> tuple[str, ...]:
    """What is to be said now that this is chosen; what was said of another choice is dropped."""
    kept = state_of(Notes)
    until, sentences = kept.get(key, (chosen, ()))
    if until is ONCE or until != chosen:
        kept.pop(key, None)
    return sentences if until == chosen else ()


def draw_notes(key: str, chosen: object = ONCE) -> None:
    """Say what is to be said now that this is chosen."""
    for sentence in take_notes(key, chosen):
        say(sentence)


def kept_notes(key: str) -> tuple[str, ...]:
    """What is kept under this key, whatever is chosen now."""
    return state_of(Notes).get(key, (None, ()))[1]


def drop_notes(start: str) -> None:
    """Say no more what is kept under keys that start with this."""
    kept = state_of(Notes)
    for key in [key for key in kept if key.startswith(start)]:
        del kept[key]
