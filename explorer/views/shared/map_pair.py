"""Two attention maps side by side on one scale, and their difference around zero."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from torch import Tensor

from explorer.analysis.comparison import largest_change, map_difference, pool_map, pool_mask
from explorer.analysis.token_alignment import (
    AlignedTokens,
    NotAlignedError,
    align_places,
    align_tokens,
)
from explorer.analysis.word_groups import Group
from explorer.app.messages import say
from explorer.catalog.attention_parts import WORDS, head_title
from explorer.components import matrix
from explorer.components.matrix import MatrixLabels
from explorer.inference.forward_pass import ForwardPass
from explorer.text import Token
from explorer.text.literal import literal
from explorer.views.shared import widgets


@dataclass(frozen=True, eq=False)
class Head:
    """One head over a text."""

    forward: ForwardPass
    part: str
    layer: int
    head: int

    @property
    def place(self) -> tuple[str, int, int]:
        return self.part, self.layer, self.head


MapGroups = tuple[tuple[Group, ...], tuple[Group, ...]]
"""The groups of queries and of keys of a map: the places of the tokens of each."""


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
        return self.forward.weights(*self.head.place)

    @property
    def allowed(self) -> Tensor:
        return self.forward.mask(self.head.part, self.head.layer)

    @property
    def rows(self) -> tuple[Token, ...]:
        return self.forward.rows(self.head.part)

    @property
    def columns(self) -> tuple[Token, ...]:
        return self.forward.columns(self.head.part)


@dataclass(frozen=True, eq=False)
class AlignedMaps:
    """Two maps over common groups of queries and keys, each (groups, groups)."""

    rows: AlignedTokens
    columns: AlignedTokens
    first: Tensor
    second: Tensor
    allowed: tuple[Tensor, Tensor]
    """Where either may attend."""

    @property
    def is_pooled(self) -> bool:
        return self.rows.is_pooled or self.columns.is_pooled

    @property
    def groups(self) -> tuple[MapGroups, MapGroups] | None:
        """The groups of queries and of keys in the first and in the second; None if none pools."""
        if not self.is_pooled:
            return None
        rows, columns = self.rows, self.columns
        return (rows.first, columns.first), (rows.second, columns.second)

    @property
    def difference(self) -> Tensor:
        """second − first."""
        return map_difference(self.first, self.second)


def align_sides(first: MapSide, second: MapSide) -> AlignedMaps:
    """Both maps over what their tokens have in common. NotAlignedError says why there is nothing.

    Tokens of one text are aligned by their characters, others by their places where there are
    as many on both sides.
    """
    rows = _align(first, second, first.rows, second.rows, "rows")
    columns = rows
    if first.rows is not first.columns or second.rows is not second.columns:
        columns = _align(first, second, first.columns, second.columns, "columns")
    if not (rows.is_pooled or columns.is_pooled):
        allowed = first.allowed, second.allowed
        return AlignedMaps(rows, columns, first.values, second.values, allowed)
    mine, theirs = (rows.first, columns.first), (rows.second, columns.second)
    return AlignedMaps(
        rows,
        columns,
        pool_map(first.values, *mine),
        pool_map(second.values, *theirs),
        (pool_mask(first.allowed, *mine), pool_mask(second.allowed, *theirs)),
    )


def _align(
    first: MapSide,
    second: MapSide,
    mine: tuple[Token, ...],
    theirs: tuple[Token, ...],
    axis: str,
) -> AlignedTokens:
    """The groups of one axis of both maps."""
    one, other = first.forward, second.forward
    are_typed = mine is one.tokens and theirs is other.tokens
    if are_typed and (one.text, one.pair) == (other.text, other.pair):
        return align_tokens(mine, theirs, one.text, one.pair)
    if len(mine) == len(theirs):
        return align_places(mine, theirs)
    counts = f"{len(mine):,} and {len(theirs):,} tokens"
    if are_typed:
        raise NotAlignedError(
            f"The maps are over {counts} of different texts, so their cells do not belong together "
            "and there is no difference to show: choose texts of the same number of tokens."
        )
    raise NotAlignedError(
        f"The {axis} are {counts}, and generated ones have no characters in the typed text, so the "
        "maps cannot be aligned and there is no difference to show: choose an attention over the "
        "typed text."
    )


def draw_map_pair(
    first: MapSide,
    second: MapSide,
    top: float,
    *,
    models: tuple[str, str],
    keys: tuple[str, str] = ("map_first", "map_second"),
    title: str = "Second − first",
    **pinning: Any,
) -> AlignedMaps | None:
    """Both maps under their `keys`, their colours ending at `top`; then second − first.

    `models` are the names in their titles. The difference is over the groups of tokens that both
    have; None where there are none, and its place says why. All are drawn in cells of one size.
    `pinning` is the cell that is pinned in all three, and what to call when another one is.
    """
    sides, aligned, fault = (first, second), None, ""
    try:
        aligned = align_sides(first, second)
    except NotAlignedError as error:
        fault = str(error)
    columns = widgets.side_by_side(1, 1, 1, bottom=aligned is not None)
    beside = [MatrixLabels(side.rows, side.columns, *_names(side)) for side in sides]
    if aligned is not None:
        beside.append(MatrixLabels(aligned.rows.labels, aligned.columns.labels, *_names(second)))
    names = _map_names(first, second, models)
    whole = difference_title(first, second, models, title)
    for column, side, key, name in zip(columns[:2], sides, keys, names, strict=True):
        with column:
            st.markdown(f"**{literal(side.title)}**")
            st.text(name)
            _map(
                side,
                side.values,
                side.rows,
                side.columns,
                allowed=side.allowed,
                key=key,
                sentence=WORDS[side.head.part].cell,
                top=top,
                title=f"{name}, {side.title.lower()}" if names[0] == names[1] else name,
                beside=beside,
                **pinning,
            )
    with columns[2]:
        st.markdown(f"**{title}**")
        st.text(whole)
        if aligned is None:
            say(fault)
            return None
        if aligned.is_pooled:
            st.text(f"Over {len(aligned.columns.labels):,} groups of tokens")
        difference = aligned.difference
        _map(
            second,
            difference,
            aligned.rows.labels,
            aligned.columns.labels,
            allowed=aligned.allowed[0] | aligned.allowed[1],
            key="map_difference",
            title=whole,
            scale="diverging",
            sentence="{row}, {column}: {value}",
            unit="change in weight",
            top=largest_change(difference) or 1.0,
            beside=beside,
            **pinning,
        )
    return aligned


def difference_title(
    first: MapSide, second: MapSide, models: tuple[str, str], title: str = "Second − first"
) -> str:
    """Both maps in full; of one head that is on both sides, what their difference is called."""
    one, other = _map_names(first, second, models)
    return f"{other}, {title[:1].lower()}{title[1:]}" if one == other else f"{other} − {one}"


def _map_names(first: MapSide, second: MapSide, models: tuple[str, str]) -> tuple[str, str]:
    one, other = (
        head_title(model, side.head.part, side.head.layer, side.head.head)
        for model, side in zip(models, (first, second), strict=True)
    )
    return one, other


def _names(side: MapSide) -> tuple[str, str]:
    words = WORDS[side.head.part]
    return words.row, words.column


def _map(
    side: MapSide,
    values: Tensor,
    rows: tuple[Token, ...],
    columns: tuple[Token, ...],
    **how: Any,
) -> None:
    """Values over tokens, or over groups of them, named as those of a side."""
    row_name, column_name = _names(side)
    matrix(
        values,
        rows,
        columns,
        row_name=row_name,
        column_name=column_name,
        height="content",
        **how,
    )
