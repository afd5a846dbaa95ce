"""All heads at once: `streamlit run tests/components/grid_demo.py`, ?show=small or large."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components import grid

st.set_page_config(layout="wide")
st.title("Grid")
show = st.query_params.get("show", "small")
torch.manual_seed(0)

layers, heads, queries, keys = {
    "small": (2, 4, 12, 12),
    "cross": (2, 4, 8, 14),
    "large": (12, 12, 128, 128),
}[show]
scores = 2 * torch.randn(layers, heads, queries, keys)
for layer in range(layers):
    for head in range(heads):
        scores[layer, head] += 6 * torch.eye(queries, keys).roll(head - layer, 1)
if queries == keys:
    scores = scores.masked_fill(~torch.ones(queries, keys).tril().bool(), -torch.inf)


def remember(layer: int, head: int) -> None:
    st.session_state.chosen = (layer, head)


picked = grid(
    scores.softmax(-1),
    selected=st.session_state.get("chosen", (0, 0)),
    key="g",
    on_pick=remember,
)
runs = st.session_state["runs"] = st.session_state.get("runs", 0) + 1
st.text(f"picked {picked.picked}, chosen {st.session_state.get('chosen')}, run {runs}")
