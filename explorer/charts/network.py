"""Lines, boxes and words at places in pixels, for print: what a canvas draws on the screen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from explorer.charts.theme import LIGHT
from explorer.charts.vega_lite import Spec, category, chart, fixed, layer, quantity, text_line
from explorer.text.visible_text import cut

SLANT, LETTER, LONGEST = 45, 6.6, 25
"""Degrees of long words side by side; pixels of a letter of type 11; letters of a word."""
Place = tuple[float, float]


@dataclass(frozen=True)
class Stroke:
    """A curve near these places, of this kind, with its width and its opacity from 0 to 1."""

    places: Sequence[Place]
    kind: str
    width: float
    opacity: float = 1.0


@dataclass(frozen=True)
class Mark:
    """A box around a place: its width and height, its colour, its border, round corners."""

    at: Place
    size: Place
    colour: str
    opacity: float = 1.0
    border: bool = False
    round: bool = False


@dataclass(frozen=True)
class Word:
    """A word in the middle of a place; with an angle in degrees it begins there and falls."""

    at: Place
    text: str
    angle: int = 0
    muted: bool = False


def slant(words: Sequence[str], room: float) -> int:
    """The angle of words of which each has so much room."""
    longest = max((min(LONGEST, len(word)) for word in words), default=0)
    return SLANT if LETTER * longest > room else 0


def network(
    size: Place,
    lines: Sequence[Stroke],
    marks: Sequence[Mark],
    words: Sequence[Word],
    colours: Mapping[str, str],
    dashed: Sequence[str] = (),
) -> Spec:
    """The chart, of this size; the legend names the kinds in their order with their colours.

    Places are measured from the upper left corner. Lines of the `dashed` kinds are dashed.
    """
    ends = zip(("x", "y"), ([0, size[0]], [size[1], 0]), strict=True)
    at = {side: quantity(side, axis=None, scale=fixed(*domain)) for side, domain in ends}
    kinds = [*colours]
    scale = {"domain": kinds, "range": [*colours.values()]}
    dash = {"domain": kinds, "range": [[5, 3] if kind in dashed else [1, 0] for kind in kinds]}
    raw = {"scale": None, "legend": None}
    curve = layer(
        {"type": "line", "interpolate": "basis", "strokeCap": "butt"},
        [
            {"line": place, "step": step, "x": x, "y": y, "kind": one.kind}
            | {"width": one.width, "opacity": one.opacity}
            for place, one in enumerate(lines)
            for step, (x, y) in enumerate(one.places)
        ],
        **at,
        detail=text_line("line"),
        order=quantity("step"),
        color=category("kind", scale=scale),
        strokeDash=category("kind", scale=dash),
        size=quantity("width", **raw),  # of a line its width
        strokeOpacity=quantity("opacity", **raw),
    )
    boxes = [
        layer(
            {"type": "rect", "cornerRadius": 9 if is_round else 0}
            | {"stroke": LIGHT.muted, "strokeWidth": int(border)},
            [
                {"x": x - wide / 2, "x2": x + wide / 2, "y": y - high / 2, "y2": y + high / 2}
                | {"colour": one.colour, "opacity": one.opacity}
                for one in marks
                if (one.border, one.round) == (border, is_round)
                for (x, y), (wide, high) in [(one.at, one.size)]
            ],
            **at,
            x2={"field": "x2"},
            y2={"field": "y2"},
            fill=category("colour", scale=None),
            fillOpacity=quantity("opacity", **raw),
        )
        for border, is_round in sorted({(one.border, one.round) for one in marks})
    ]
    texts = [
        layer(
            {"type": "text", "fontSize": 11, "angle": angle, "baseline": "middle"}
            | {
                "align": "center" if not angle else "left",
                "color": LIGHT.muted if muted else LIGHT.text,
            },
            [
                {"x": x, "y": y, "text": cut(one.text, LONGEST)}
                for one in words
                if (one.angle, one.muted) == (angle, muted)
                for x, y in [one.at]
            ],
            **at,
            text=text_line("text"),
        )
        for angle, muted in sorted({(one.angle, one.muted) for one in words})
    ]
    return chart(curve, *boxes, *texts, width=size[0], height=size[1])
