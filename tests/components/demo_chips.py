"""Tokens as chips: ?show=words, strange, or a number of characters."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components import chips
from tests.components.samples import SENTENCE, STRANGE_SENTENCE, characters, words

st.set_page_config(layout="wide")
st.title("Chips")
show = st.query_params.get("show", "words")

if show == "words":
    picked = chips(words(SENTENCE), key="c", text=SENTENCE, highlight=4, on_pick=lambda place: None)
    st.text(f"picked {picked}")
elif show == "strange":
    chips(words(STRANGE_SENTENCE), key="c", text=STRANGE_SENTENCE)
    chips(["plain", "strings", "too"], key="plain")
else:
    text = ("to be or not to be " * 6000)[: int(show)]
    chips(characters(text), key="c", text=text, height=400)
