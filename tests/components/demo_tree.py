"""A tree of tokens: ?show=small or long."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components.tree import Node, tree

st.set_page_config(layout="wide")
st.title("Tree")
show = st.query_params.get("show", "small")
nodes = [
    Node(-1, 0, 0, "start", "", "the start", "start"),
    Node(0, 1, 0, "a", "0.5", "{token} is kept"),
    Node(0, 1, 1, "<i>b</i>", "0.25", "{token} is cut", "cut"),
    Node(1, 2, 0, "c", "0.1", "{token} is forced", "forced"),
]
if show == "long":
    nodes = [Node(at - 1, at, 0, f"n{at}", "1.00", "{token}") for at in range(40)]
tree(
    nodes,
    key="t",
    idle="Point at a node.",
    rows=3,
    marked=range(len(nodes)) if show == "long" else [0, 1],
    follows=show == "long",
    on_pick=lambda place: st.session_state.update(chosen=place),
)
st.session_state.runs = st.session_state.get("runs", 0) + 1
st.text(f"chosen {st.session_state.get('chosen')}, run {st.session_state.runs}")
