"""Heads in the order of a number: ?show=small, many or cross."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components.ranked import Item, ranked
from tests.components.samples import causal, heads

st.set_page_config(layout="wide")
st.title("Ranked")
show = st.query_params.get("show", "small")
weights, count = {
    "small": lambda: (heads(2, 4, 12, 12) * causal(12), 6),
    "many": lambda: (heads(4, 6, 16, 16), 24),
    "cross": lambda: (heads(1, 2, 3, 14), 2),
}[show]()


def remember(layer: int, head: int) -> None:
    st.session_state.chosen = (layer, head)


chosen = st.session_state.get("chosen", (0, 0))
places = [(layer, head) for layer in range(len(weights)) for head in range(weights.shape[1])]
items = [
    Item(layer, head, f"{at + 1} of {len(places)}", f"{0.9 - at / 100:.3f}", weights[layer, head])
    for at, (layer, head) in enumerate(places[:count])
]
ranked(items, key="r", selected=chosen, on_pick=remember)
st.session_state.runs = st.session_state.get("runs", 0) + 1
st.text(f"chosen {chosen}, run {st.session_state.runs}")
