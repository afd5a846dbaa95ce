"""Two maps beside each other on one scale, and their difference around zero."""

from __future__ import annotations

from typing import Any

import streamlit as st
from torch import Tensor

from explorer.analysis.comparison import Difference, NothingToSubtractError, Side, difference
from explorer.app.messages import say
from explorer.catalog.attention_parts import WORDS
from explorer.components import matrix
from explorer.text.literal import literal
from explorer.views.shared import widgets


def show(
    first: Side,
    second: Side,
    top: float,
    *,
    keys: tuple[str, str] = ("map_first", "map_second"),
    title: str = "Second − first",
    **hold: Any,
) -> Difference | None:
    """The maps under their `keys`, their colours ending at `top`; then the difference.

    Where there is none, its place says why. `hold` is what is held in all three, and what
    to call when that changes.
    """
    places = widgets.side_by_side(1, 1, 1)
    for place, side, key in zip(places[:2], (first, second), keys, strict=True):
        with place:
            st.markdown(f"**{literal(side.title)}**")
            sentence = WORDS[side.part].cell
            _map(side, side.values, side.allowed, key=key, sentence=sentence, top=top, **hold)
    with places[2]:
        st.markdown(f"**{title}**")
        try:
            found = difference(first, second)
        except NothingToSubtractError as error:
            say(str(error))
            return None
        _map(
            second,
            found.values,
            found.allowed,
            key="map_difference",
            scale="diverging",
            sentence="{row}, {column}: {value}",
            unit="change of weight",
            top=found.largest or 1.0,
            **hold,
        )
    return found


def _map(side: Side, values: Tensor, allowed: Tensor, **how: Any) -> None:
    """Values over the tokens of a side."""
    words = WORDS[side.part]
    matrix(
        values,
        side.rows,
        side.columns,
        allowed=allowed,
        row_name=words.row,
        column_name=words.column,
        height=widgets.SMALL_HEIGHT,
        **how,
    )
