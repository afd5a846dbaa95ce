"""The sentence of the bar. If it is too long for an address, the address has the hash of a file.

The steps of a lesson bring sentences of their own. The one before comes back when it is left.
"""

from dataclasses import dataclass

import streamlit as st

from explorer.app import address, streamlit_patches
from explorer.app.address_parameters import TEXT_LIMIT
from explorer.app.messages import keep_note
from explorer.app.reader import network_digest
from explorer.app.session import session, state_of
from explorer.system import long_texts
from explorer.system.limits import TEXT_CHARACTERS

TEXT_FILE = "text_file"
SENTENCE = "sentence"
"""The key of the note that a text is too long, or that the text of a link is missing."""
NOT_HERE = (
    "The text of this link is not on this server. It was stored on another one, or was deleted."
)
NO_ROOM = "This server has no room to store a text this long, so links do not include it."


@dataclass
class AroundLesson:
    """The sentences before and in the open lesson."""

    before: str | None = None
    """The last one outside of lessons; empty if it was the usual one, None if there was none."""
    last: str | None = None
    """The last one in the open lesson; None outside of lessons."""
    of_lesson: frozenset[str] = frozenset()
    """Those that its steps bring or ask for."""


def settle_text(usual: str) -> bool:
    """Settle the sentence, `usual` if there is none; whether it is too long for an address.

    It is read from the address if nobody has typed, and after the browser's Back.
    """
    state, reader = st.session_state, session()
    came_back = streamlit_patches.came_back()
    if came_back or "text" not in state:
        _take_from_address(usual, came_back)
    typed, most = str(state.get("text") or ""), TEXT_CHARACTERS.most
    if len(typed) > most:
        keep_note(SENTENCE, TEXT_CHARACTERS.refusal(len(typed)))
        typed = state["text"] = typed[:most]
    was_long, reader.has_long_text = reader.has_long_text, len(typed) > TEXT_LIMIT
    if reader.has_long_text:
        name = long_texts.keep(typed, network_digest())
        streamlit_patches.keep_in_address("text")
        address.remove("text")
        if name:
            address.write(TEXT_FILE, name)
        else:
            address.remove(TEXT_FILE)
            keep_note(SENTENCE, NO_ROOM)
    elif address.is_named(TEXT_FILE):
        address.remove(TEXT_FILE)
    if was_long and not reader.has_long_text:
        state["text"] = typed  # a newly bound widget writes only what a script has chosen
    return reader.has_long_text


def comes_back_after_lesson(usual: str) -> bool:
    """Whether a lesson was just left: the next run has the sentence before it.

    If the reader has typed one that is not the lesson's over it, that one stays. To be called in
    each run, after `settle_text`; `usual` is the sentence of a bar in which nobody has typed.
    """
    now, came_back = state_of(AroundLesson), streamlit_patches.came_back()
    text = str(st.session_state.get("text", ""))
    if not session().has_long_text and (came_back or "text" not in st.session_state):
        text = address.value_of("text") or usual  # the bar takes it when it is drawn
    if address.is_named("lesson"):
        now.last = text
        return False
    last, now.last = now.last, None
    is_elsewhere = came_back and address.is_named("text") and text != last
    if last is not None and now.before is not None and not is_elsewhere:
        text = (now.before or usual) if last in {usual, *now.of_lesson} else last
        session().choose_next["text"] = text
    now.before = "" if text == usual else text
    return last is not None


def _take_from_address(usual: str, came_back: bool) -> None:
    state, reader = st.session_state, session()
    text = address.value_of("text")
    if address.is_named(TEXT_FILE) and not text:
        long_text = long_texts.read(address.value_of(TEXT_FILE))
        if long_text is None:
            keep_note(SENTENCE, NOT_HERE)
        else:
            state["text"] = long_text
    elif len(text) > TEXT_LIMIT:
        state["text"] = text
    elif came_back and reader.has_long_text:
        state["text"] = text or usual
