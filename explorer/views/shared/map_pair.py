"""Two attention maps side by side on one scale, and their difference around zero."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from explorer.analysis.token_alignment import (
    AlignedTokens,
    NotAlignedError,
    align_places,
    align_tokens,
    largest_change,
    map_difference,
    pool_map,
    pool_mask,
)
from explorer.analysis.word_groups import Group
from explorer.app.messages import say
from explorer.catalog.attention_parts import head_title
from explorer.components.matrix import MatrixLabels
from explorer.inference.forward_pass import ForwardPass
from explorer.text import Token
from explorer.text.number_format import three
from explorer.views.shared import widgets

MapGroups = tuple[tuple[Group, ...], tuple[Group, ...]]
"""The groups of queries and of keys of a map: the places of the tokens of each."""


@dataclass(frozen=True, eq=False)
class MapSide:
    """One head of a model over one text, under a title; `about` says how its pass was changed."""

    title: str
    model: str
    forward: ForwardPass
    part: str
    layer: int
    head: int
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, int, int]:
        return self.part, self.layer, self.head

    @property
    def name(self) -> str:
        return head_title(self.model, *self.place)

    @property
    def values(self) -> Tensor:
        return self.forward.weights(*self.place)

    @property
    def allowed(self) -> Tensor:
        return self.forward.mask(self.part, self.layer)

    @property
    def rows(self) -> tuple[Token, ...]:
        return self.forward.rows(self.part)

    @property
    def columns(self) -> tuple[Token, ...]:
        return self.forward.columns(self.part)


@dataclass(frozen=True, eq=False)
class AlignedMaps:
    """Two maps over common groups, each (groups, groups), and where either may attend."""

    rows: AlignedTokens
    columns: AlignedTokens
    first: Tensor
    second: Tensor
    allowed: tuple[Tensor, Tensor]

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
    """Both maps over their common tokens. Raises NotAlignedError, which says why there are none.

    Tokens of one text are aligned by their characters, others by their places if both sides have
    the same number.
    """
    rows = _align(first, second, first.rows, second.rows, "rows")
    columns = rows
    if first.rows is not first.columns or second.rows is not second.columns:
        columns = _align(first, second, first.columns, second.columns, "columns")
    if not (rows.is_pooled or columns.is_pooled):
        allowed = first.allowed, second.allowed
        return AlignedMaps(rows, columns, first.values, second.values, allowed)
    mine, theirs = (rows.first, columns.first), (rows.second, columns.second)
    pooled = pool_map(first.values, *mine), pool_map(second.values, *theirs)
    allowed = pool_mask(first.allowed, *mine), pool_mask(second.allowed, *theirs)
    return AlignedMaps(rows, columns, *pooled, allowed)


def _align(
    first: MapSide, second: MapSide, mine: tuple[Token, ...], theirs: tuple[Token, ...], axis: str
) -> AlignedTokens:
    """The groups of one axis of both maps."""
    first_pass, second_pass = first.forward, second.forward
    are_typed = mine is first_pass.tokens and theirs is second_pass.tokens
    if are_typed and (first_pass.text, first_pass.pair) == (second_pass.text, second_pass.pair):
        return align_tokens(mine, theirs, first_pass.text, first_pass.pair)
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
    keys: tuple[str, str] = ("map_first", "map_second"),
    title: str = "Second − first",
    **pinning: Any,
) -> AlignedMaps | None:
    """Both maps under their `keys` with colours that end at `top`, and second − first.

    The difference is over the groups of tokens that both maps have; if there are none, its place
    says why and this returns None. All cells have one size. `pinning` is the cell that is pinned in
    all three, and the callback that pins another.
    """
    sides, aligned, refusal = (first, second), None, ""
    pictures = [MatrixLabels(side.rows, side.columns) for side in sides]
    try:
        aligned = align_sides(first, second)
        pictures.append(MatrixLabels(aligned.rows.labels, aligned.columns.labels))
    except NotAlignedError as error:
        refusal = str(error)
    places = widgets.side_by_side(1, 1, 1)
    options = {"neighbours": pictures, **pinning}
    for place, side, key in zip(places, sides, keys, strict=False):
        with place:
            widgets.draw_weights(
                side.forward,
                side.part,
                side.values,
                key,
                f"{side.name}, {side.title.lower()}" if first.name == second.name else side.name,
                allowed=side.allowed,
                top=top,
                heading=side.title,
                **options,
            )
    with places[2]:
        if aligned is None:
            say(refusal)
            return None
        groups = f", over {len(aligned.columns.labels):,} groups of tokens"
        change = largest_change(aligned.difference)
        finer = f" · {three(top / change)} × finer scale" if 0 < 2 * change < top else ""
        widgets.draw_weights(
            second.forward,
            second.part,
            aligned.difference,
            "map_difference",
            difference_title(first, second, title),
            rows=aligned.rows.labels,
            columns=aligned.columns.labels,
            allowed=aligned.allowed[0] | aligned.allowed[1],
            heading=title + finer + groups * aligned.is_pooled,
            scale="diverging",
            sentence="{row}, {column}: {value}",
            unit="change in weight",
            top=change or 1.0,
            **options,
        )
    return aligned


def difference_title(first: MapSide, second: MapSide, title: str = "Second − first") -> str:
    """Both maps by name; if one head is on both sides, its name and the `title`."""
    if first.name == second.name:
        return f"{second.name}, {title[:1].lower()}{title[1:]}"
    return f"{second.name} − {first.name}"
