"""The line view: ?show=words, cross, strange, or a number of tokens."""

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

if show == "words":
    lines(heads(4, 12, 12), WORDS, WORDS, key="l")
elif show == "cross":
    head = st.slider("Head", 0, 3, 1, key="head")
    lines(heads(4, 10, 12), FRENCH, WORDS, key="l", selected_head=head)
elif show == "strange":
    lines(heads(4, len(STRANGE), len(STRANGE)), STRANGE, STRANGE, key="l")
else:
    n = int(show)
    labels = [f"{WORDS[i % 12]}{i}" for i in range(n)]
    lines(heads(12, n, n), labels, labels, key="l")
