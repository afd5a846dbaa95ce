"""All heads at once: ?show=small, cross or large."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components import grid
from tests.components.samples import causal, heads

st.set_page_config(layout="wide")
st.title("Grid")
show = st.query_params.get("show", "small")
weights = {
    "small": lambda: heads(2, 4, 12, 12) * causal(12),
    "cross": lambda: heads(2, 4, 8, 14),
    "large": lambda: heads(12, 12, 128, 128),
}[show]()


def remember(layer: int, head: int) -> None:
    st.session_state.chosen = (layer, head)


chosen = st.session_state.get("chosen", (0, 0))
grid(weights, selected=chosen, key="g", on_pick=remember)
st.session_state.runs = st.session_state.get("runs", 0) + 1
st.text(f"chosen {chosen}, run {st.session_state.runs}")
