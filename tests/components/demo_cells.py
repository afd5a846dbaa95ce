"""A table to pick from: ?show=small, diverging, large, absent or words."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components.cells import cells

st.set_page_config(layout="wide")
st.title("Cells")
show = st.query_params.get("show", "small")
values = {
    "small": lambda: torch.arange(8).reshape(2, 4) / 80,
    "diverging": lambda: torch.tensor([[-2.0, 0.0, 1.0]]),
    "large": lambda: torch.rand(144, 144, generator=torch.Generator().manual_seed(0)),
    "absent": lambda: torch.tensor([[0.25, torch.nan], [0.0, 0.5]]),
    "words": lambda: torch.arange(64).reshape(8, 8) / 64,
}[show]()


def remember(row: int, column: int) -> None:
    st.session_state.chosen = (row, column)


names = ["<s>", "the", "cat", "antidisestablishmentarianism", "sat", "on", "the", "mat"]
rows, columns = ([str(at) for at in range(size)] for size in values.shape)
chosen = st.session_state.get("chosen", (0, 1))
cells(
    values,
    names if show == "words" else rows,
    names if show == "words" else columns,
    key="c",
    selected=chosen,
    on_pick=remember,
    unit="weight",
    scale="diverging" if show == "diverging" else "sequential",
)
st.session_state.runs = st.session_state.get("runs", 0) + 1
st.text(f"chosen {chosen}, run {st.session_state.runs}")
