"""Two attention maps side by side on one scale, and their difference around zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from torch import Tensor

from explorer.analysis.comparison import DifferentSizesError, largest_change, map_difference
from explorer.app.messages import say
from explorer.catalog.attention_parts import WORDS, head_title
from explorer.components import matrix
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets import Head
from explorer.text import Token
from explorer.text.literal import literal
from explorer.views.shared import widgets


@dataclass(frozen=True, eq=False)
class MapSide:
    """One head over one text, under a title; `about` says how its pass was changed."""

    title: str
    head: Head
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def forward(self) -> ForwardPass:
        return self.head.forward

    @property
    def values(self) -> Tensor:
        return self.forward.weights(self.head.part, self.head.layer, self.head.head)

    @property
    def allowed(self) -> Tensor:
        return self.forward.mask(self.head.part, self.head.layer)

    @property
    def rows(self) -> tuple[Token, ...]:
        return self.forward.rows(self.head.part)

    @property
    def columns(self) -> tuple[Token, ...]:
        return self.forward.columns(self.head.part)


def draw_map_pair(
    first: MapSide,
    second: MapSide,
    top: float,
    *,
    models: tuple[str, str],
    keys: tuple[str, str] = ("map_first", "map_second"),
    title: str = "Second − first",
    **pinning: Any,
) -> Tensor | None:
    """Both maps under their `keys`, their colours ending at `top`; then second − first.

    `models` are the names in their titles. Gives the difference; None where there is none, and
    its place says why. `pinning` is the
    cell that is pinned in all three, and what to call when another one is.
    """
    columns = widgets.side_by_side(1, 1, 1)
    sides = first, second
    names = [
        head_title(model, side.head.part, side.head.layer, side.head.head)
        for model, side in zip(models, sides, strict=True)
    ]
    for column, side, key, name in zip(columns[:2], sides, keys, names, strict=True):
        with column:
            st.markdown(f"**{literal(side.title)}**")
            st.text(name)
            full = f"{name}, {side.title.lower()}" if names[0] == names[1] else name
            how = {"sentence": WORDS[side.head.part].cell, "top": top, "title": full}
            _map(side, side.values, side.allowed, key=key, **how, **pinning)
    with columns[2]:
        st.markdown(f"**{title}**")
        try:
            difference = map_difference(first.values, second.values)
        except DifferentSizesError as error:
            say(str(error))
            return None
        _map(
            second,
            difference,
            first.allowed | second.allowed,
            key="map_difference",
            title=f"{names[1]}, {title[:1].lower()}{title[1:]}"
            if names[0] == names[1]
            else f"{names[1]} − {names[0]}",
            scale="diverging",
            sentence="{row}, {column}: {value}",
            unit="change in weight",
            top=largest_change(difference) or 1.0,
            **pinning,
        )
    return difference


def _map(side: MapSide, values: Tensor, allowed: Tensor, **how: Any) -> None:
    """Values over the tokens of a side."""
    words = WORDS[side.head.part]
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
