"""Tokens in two halves: ?show=words, cross, held, strange, empty, or a number of tokens."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components.inspect import inspect
from tests.components.samples import FRENCH, STRANGE, WORDS, attention, causal, heads

st.set_page_config(layout="wide")
st.title("Inspect")
show = st.query_params.get("show", "words")
n = len(WORDS)

if show == "words":
    inspect(attention(n) * causal(n), WORDS, WORDS, key="i", allowed=causal(n))
elif show == "cross":
    inspect(heads(len(FRENCH), n), FRENCH, WORDS, key="i", same=False)
elif show == "held":
    kept = st.session_state.setdefault("kept", {"token": (0, 4)})
    inspect(
        attention(n),
        WORDS,
        WORDS,
        key="i",
        held=kept["token"],
        on_hold=lambda token: kept.update(token=token),
    )
    st.text(f"told {kept['token']}")
elif show == "strange":
    inspect(attention(len(STRANGE)), STRANGE, STRANGE, key="i")
elif show == "empty":
    values = attention(n)
    values[2] = 0
    values[3, 4] = torch.nan
    inspect(values, WORDS, WORDS, key="i")
else:
    size = int(show)
    labels = [f"{WORDS[i % n]}{i}" for i in range(size)]
    inspect(attention(size), labels, labels, key="i", allowed=causal(size))
