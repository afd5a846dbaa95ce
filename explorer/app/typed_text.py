"""The sentence of the bar. If it is too long for an address, the address has the hash of a file."""

import streamlit as st

from explorer.app import address, streamlit_patches
from explorer.app.address_parameters import TEXT_LIMIT
from explorer.app.messages import keep_note
from explorer.app.reader import network_digest
from explorer.app.session import session
from explorer.system import long_texts
from explorer.system.limits import TEXT_CHARACTERS

TEXT_FILE = "text_file"
SENTENCE = "sentence"
"""The key of the note that a text is too long, or that the text of a link is missing."""
NOT_HERE = (
    "The text of this link is not on this server. It was stored on another one, or was deleted."
)
NO_ROOM = "This server has no room to store a text this long, so links do not include it."


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
