"""Tokens on two axes, with their paths through the layers and the neighbours of one of them."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from explorer.charts.vega_lite import (
    MIDDLE,
    Spec,
    category,
    chart,
    fixed,
    layer,
    number_line,
    quantity,
    text_line,
)

SIZE, PRINTED_SIZE, PHONE = (540, 400), (620, 270), (310, 480)
"""The pixels within the axes of a small window, in print, and on a phone; labels that fit fit in a
larger one."""
CHARACTER, LINE, MARK = 7.4, 15, 5
"""Pixels: the width and height of a label's character, and half the side of a token's mark."""
SIDES: dict[str, dict[str, Any]] = {
    "right": {"align": "left", "dx": 8, "dy": 0},
    "left": {"align": "right", "dx": -8, "dy": 0},
    "above": {"align": "center", "dx": 0, "dy": -16},
    "below": {"align": "center", "dx": 0, "dy": 16},
    "upper right": {"align": "left", "dx": 6, "dy": -13},
    "lower right": {"align": "left", "dx": 6, "dy": 13},
    "upper left": {"align": "right", "dx": -6, "dy": -13},
}
BEFORE_LABEL = {"left": 0.0, "center": 0.5, "right": 1.0}
"""The share of a label's width that is to the left of its place."""
AS_WIDE = {"transform": [{"filter": f"datum.narrow == (width < {SIZE[0]})"}]}
"""A label belongs to a narrow chart or to a wide one."""
EDGE: Spec = {"x2": {"field": "to_x"}, "y2": {"field": "to_y"}}
Range = tuple[float, float]
Size = tuple[int, int]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class MapPoint:
    """A vector's place on the two axes, its token, and what pointing at it says."""

    token: str
    x: float
    y: float
    about: str = ""

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.x) and math.isfinite(self.y)


@dataclass(frozen=True)
class TokenMap:
    """The vocabulary, each token's path, and the neighbours, those of the chosen token first.

    A path ends where its token is drawn. The first `n_edges` of the neighbours are joined to the
    path of the `chosen` token, if any.
    """

    vocabulary: Sequence[MapPoint]
    paths: Sequence[Sequence[MapPoint]]
    near: Sequence[MapPoint]
    n_edges: int
    chosen: int | None


def token_map(
    tokens: TokenMap, titles: Sequence[str], ranges: Sequence[Range], size: Size = SIZE
) -> tuple[Spec, int]:
    """The chart of at least this size, on these axes, and how many labels it leaves out."""
    x, y = (
        quantity(name, title=title, scale=fixed(*ends))
        for name, title, ends in zip("xy", titles, ranges, strict=True)
    )
    ends = [path[-1] for path in tokens.paths]
    others = [end for place, end in enumerate(ends) if place != tokens.chosen]
    chosen = [] if tokens.chosen is None else [ends[tokens.chosen]]
    named = {(round(end.x, 4), round(end.y, 4)) for end in ends}  # one label for one place
    near = [point for point in tokens.near if (round(point.x, 4), round(point.y, 4)) not in named]
    labelled = [point for point in [*chosen, *others, *near] if point.is_finite]
    sides, narrow = (label_sides(labelled, ranges, room) for room in (size, PHONE))
    edges = [
        {"x": start.x, "y": start.y, "to_x": end.x, "to_y": end.y}
        for start in chosen
        for end in tokens.near[: tokens.n_edges]
        if start.is_finite and end.is_finite
    ]
    hue = category("place", legend=None)
    has_ways = any(len(path) > 1 for path in tokens.paths)
    by_place = [  # without lines to tell apart, only the chosen token has a colour of its own
        [
            {**row, "place": hue_of, "step": step, "way": place}
            for step, row in enumerate(_rows(path))
            for hue_of in [str(place if has_ways else int(place == tokens.chosen))]
        ]
        for place, path in enumerate(tokens.paths)
    ]
    hues = {
        id(point): rows[-1]["place"] for point, rows in zip(ends, by_place, strict=True) if rows
    }
    tooltip = [text_line("token"), text_line("about", "is")]
    tooltip += [number_line("x", titles[0]), number_line("y", titles[1])]
    here = {"x": x, "y": y, "tooltip": tooltip}
    dot: Spec = {"type": "circle", "size": 14, "color": MIDDLE, "opacity": 0.4}
    ring: Spec = {"type": "point", "size": 34, "color": MIDDLE, "opacity": 1}
    layers = [
        layer(dot, _rows(tokens.vocabulary), **here),
        layer({"type": "rule", "opacity": 0.8}, edges, x=x, y=y, **EDGE),
        layer(
            {"type": "line", "strokeWidth": 1.5, "opacity": 0.6, "point": {"size": 12}},
            [row for rows in by_place for row in rows],
            color=hue,
            detail={"field": "way"},
            order=quantity("step"),
            **here,
        ),
        layer(ring, _rows(tokens.near), **here),
        layer(
            {"type": "circle", "size": 90, "opacity": 1},
            [r[-1] for r in by_place if r],
            color=hue,
            **here,
        ),
    ]
    for side, how in SIDES.items():
        mark: Spec = {"type": "text", "font": "monospace", "fontSize": 12, "baseline": "middle"}
        here_labels = [
            {**asdict(point), "place": hues.get(id(point)), "narrow": on is narrow}
            for on in (sides, narrow)
            for point, taken in zip(labelled, on, strict=True)
            if taken == side
        ]
        of_reader = [row for row in here_labels if row["place"] is not None]
        of_others = [row for row in here_labels if row["place"] is None]
        text = {**here, "text": {"field": "token"}}
        bold, plain = {**mark, **how, "fontWeight": "bold"}, {**mark, **how, "color": MIDDLE}
        layers += [layer(bold, of_reader, color=hue, **text) | AS_WIDE] * bool(of_reader)
        layers += [layer(plain, of_others, **text) | AS_WIDE] * bool(of_others)
    left_out = sides.count(None)
    note = f"{left_out} labels that would overlap are left out." * bool(left_out)
    return chart(*layers, usermeta={"least": size, "note": note}), left_out


def label_sides(
    points: Sequence[MapPoint], ranges: Sequence[Range], size: Size = SIZE
) -> list[str | None]:
    """The side of each point on which its label overlaps no mark and no label before it.

    None where there is no such side; O(n²) in the number of points.
    """
    (first, last), (low, high) = ranges
    across, up = size[0] / (last - first), size[1] / (high - low)
    marks = [((point.x - first) * across, (high - point.y) * up) for point in points]
    taken: list[Box] = [(x - MARK, y - MARK, x + MARK, y + MARK) for x, y in marks]
    sides: list[str | None] = []
    for point, mark in zip(points, marks, strict=True):
        width = CHARACTER * len(point.token)
        for side, how in SIDES.items():
            left = mark[0] + how["dx"] - BEFORE_LABEL[how["align"]] * width
            middle = mark[1] + how["dy"]
            box = (left, middle - LINE / 2, left + width, middle + LINE / 2)
            is_inside = min(box) >= 0 and box[2] <= size[0] and box[3] <= size[1]
            if is_inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                sides.append(side)
                break
        else:
            sides.append(None)
    return sides


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _rows(points: Sequence[MapPoint]) -> list[dict[str, Any]]:
    return [asdict(point) for point in points if point.is_finite]
