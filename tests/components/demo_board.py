"""A table of texts and bars: ?show=pick or wide."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from explorer.components.board import Cell, Column, Row, Words, board

st.set_page_config(layout="wide")
st.title("Board")
show = st.query_params.get("show", "pick")
names = ["the", "<b>x</b>", "\u202eabc"]
rows = [
    Row(
        name, [Cell("0.5", 0.5), Cell("cut", None, "cut")], mark="drawn" * (not at), pickable=at < 2
    )
    for at, name in enumerate(names)
]
columns = [Column("before", "sums to 1"), Column("after")]
if show == "wide":
    columns = [Column(str(at)) for at in range(60)]
    rows = [Row("in", [Cell(f"t{at}") for at in range(60)], is_token=False)]
words = Words("token", "Point at a cell.", "{row}, {column}: {value}", "Take {row}")
board(
    columns,
    rows,
    words,
    key="b",
    narrow=show == "wide",
    on_pick=lambda place: st.session_state.update(chosen=place),
)
st.session_state.runs = st.session_state.get("runs", 0) + 1
st.text(f"chosen {st.session_state.get('chosen')}, run {st.session_state.runs}")
