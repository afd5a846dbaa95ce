"""The first stage of the whole pass: from the letters to the tokens, and from those to numbers."""

from __future__ import annotations

import streamlit as st

from explorer.analysis.forward_pass.stage_line import Stage
from explorer.analysis.forward_pass.stage_values import Walk
from explorer.analysis.forward_pass.stage_view import tokens_of, writes
from explorer.components import chips
from explorer.text.labels import cut, readable
from explorer.text.token_labels import text_of
from explorer.views.shared.pinned_pair import FOLDED

MOST_HEIGHT, ROW = 600, 35
SHOWN, NUMBER = 24, "its number"


def show(walk: Walk, stage: Stage, row: int) -> None:
    """The tokens to choose one from, and a table with the number of each."""
    tokens = tokens_of(walk, stage.stack)
    chips(
        tokens,
        key="walk_tokens",
        highlight=row,
        on_pick=lambda place: FOLDED.put(f"{stage.stack}_token", str(place)),
    )
    columns: dict[str, list[str]] = {"position": [str(place) for place in range(len(tokens))]}
    names = [cut(text_of(token), SHOWN) for token in tokens]
    numbers = [f"{token.id:,}" for token in tokens]
    if writes(walk, stage):
        written = [cut(text_of(token), SHOWN) for token in walk.forward.written]
        columns |= {"reads": names, NUMBER: numbers, "writes": written}
    else:
        spans = [walk.forward.typed[token.start : token.end] for token in walk.forward.placed]
        letters = [cut(readable(each), SHOWN) or "none: added" for each in spans]
        columns |= {"letters": letters, "token": names, NUMBER: numbers}
    right = st.column_config.TextColumn(alignment="right")
    st.dataframe(
        columns,
        hide_index=True,
        width=560,
        height=min(MOST_HEIGHT, 38 + ROW * len(tokens)),
        column_config={"position": right, NUMBER: right},
    )
