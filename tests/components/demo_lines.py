"""The line view: ?show=words, cross, held, strange, or a number of tokens."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components import lines
from tests.components.samples import FRENCH, STRANGE, WORDS, heads

st.set_page_config(layout="wide")
st.title("Lines")
show = st.query_params.get("show", "words")
n = len(WORDS)

if show == "words":
    lines(heads(4, 12, 12), WORDS, WORDS, key="l")
elif show == "cross":
    head = st.slider("Head", 0, 3, 1, key="head")
    lines(heads(4, 10, 12), FRENCH, WORDS, key="l", drawn=[head])
elif show == "held":
    kept = st.session_state.setdefault("kept", {"drawn": (1, 2), "held": (0, 4)})
    lines(
        heads(4, n, n),
        WORDS,
        WORDS,
        key="l",
        drawn=kept["drawn"],
        held=kept["held"],
        on_choice=lambda drawn, held: kept.update(drawn=drawn, held=held),
    )
    st.text(f"told {kept['drawn']}, {kept['held']}")
elif show == "strange":
    lines(heads(4, len(STRANGE), len(STRANGE)), STRANGE, STRANGE, key="l")
else:
    size = int(show)
    labels = [f"{WORDS[i % n]}{i}" for i in range(size)]
    lines(heads(12, size, size), labels, labels, key="l")
