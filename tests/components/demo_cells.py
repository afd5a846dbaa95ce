"""A table to pick from: ?show=small, diverging, large or absent."""

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
}[show]()


def remember(row: int, column: int) -> None:
    st.session_state.chosen = (row, column)


chosen = st.session_state.get("chosen", (0, 1))
cells(
    values,
    [str(row) for row in range(values.shape[0])],
    [str(column) for column in range(values.shape[1])],
    key="c",
    selected=chosen,
    on_pick=remember,
    unit="weight",
    scale="diverging" if show == "diverging" else "sequential",
)
st.session_state.runs = st.session_state.get("runs", 0) + 1
st.text(f"chosen {chosen}, run {st.session_state.runs}")
