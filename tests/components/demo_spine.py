"""The spine of a pass: ?show=small or long."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components.spine import Bone, spine

st.set_page_config(layout="wide")
st.title("Spine")
layers = 2 if st.query_params.get("show", "small") == "small" else 30
branches = ("self-attention", "self-attention", "feed-forward")
bones = [
    Bone("<i>Embedding</i>", ("Tokens", "Sum"), ("", ""), (False, True), 1.0, "1.00"),
    *(
        Bone(f"Layer {at}", ("Queries", "Add", "Hidden"), branches, (False, True, False), 2, "2.00")
        for at in range(layers)
    ),
    Bone("Answer", ("Logits",), ("",), (False,), 0.0, ""),
]
state = st.session_state
spine(
    bones,
    key="s",
    at=state.get("at", 0),
    on_move=lambda place: state.update(at=place),
    height=400,
    note="a note",
)
state.runs = state.get("runs", 0) + 1
st.text(f"stands at {state.get('at', 0)}, run {state.runs}")
st.text_input("Words", key="words")
if st.button("To the end"):
    state["at"] = 2 + 3 * layers
    st.rerun()
