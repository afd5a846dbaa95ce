"""A film: several views of a page show one frame after another without running the page.

The browser has the messages of every frame (`mounting.filmed` collects them), and hands those of
the chosen one to the views, each by its key. A frame is chosen by the slider, the arrow keys, in
time, or by a click into the curves, which are drawn here with a mark at the frame.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.charts.figure_data import Figure, TableData, Value
from explorer.charts.vega_lite import chart, layer, quantity
from explorer.components import events, wire
from explorer.components.mounting import View
from explorer.components.player import MOVES

FILM_HTML = f"""
<div class="view film" role="group" aria-label="Film">
  <div class="moves">{MOVES}
    <input type="range" class="place" min="0" step="1" aria-label="Training step">
    <span class="where"></span>
  </div>
  <div class="stage"><canvas aria-label="Curves over the steps"></canvas></div>
  <div class="under">
    <dl class="said"></dl>
    <button type="button" class="compare">Compare with the last step</button>
  </div>
</div>
"""
FILM_HEIGHT = 304
"""Pixels: the buttons, the curves, and three lines of words."""

_VIEW = View("film", FILM_HTML)


@dataclass(frozen=True)
class Curve:
    """A line over the steps; one of a `share` ends at 1, the others at their largest value."""

    name: str
    points: Sequence[tuple[int, float]]
    share: bool = False


@dataclass(frozen=True)
class Moment:
    """One frame: its step, the messages of the views by key, and the texts about it."""

    step: int
    messages: Mapping[str, bytes]
    captions: Sequence[tuple[str, str]]


def film(
    message: bytes,
    *,
    key: str,
    title: str,
    curves: Sequence[Curve] = (),
    count: int,
    on_compare: Callable[[int], None],
) -> None:
    """Draw what `encode` made of so many moments, under this name, and of these curves.

    `on_compare(at)` is called before the next run with the moment that is to be compared.
    """

    def figures() -> list[Figure]:
        tables: list[Figure] = []
        for curve in curves:
            table: dict[str, Sequence[Value]] = {"step": [step for step, _ in curve.points]}
            table[curve.name] = [value for _, value in curve.points]
            rows = [{"step": step, "value": value} for step, value in _points(curve)]
            of_value = quantity("value", title=curve.name)
            spec = chart(layer({"type": "line"}, rows, x=quantity("step"), y=of_value))
            tables.append(TableData(table, f"{title}, {curve.name}", spec=spec))
        return tables

    _VIEW(
        key=key,
        data=message,
        height=FILM_HEIGHT,
        figures=figures,
        title=title,
        on_compared_change=events.on_place(key, "compared", count, on_compare),
    )


def encode(
    moments: Sequence[Moment],
    at: int,
    name: str,
    of: str,
    parameter: str,
    curves: Sequence[Curve],
    marks: Sequence[tuple[int, str]],
) -> bytes:
    """All frames as one message; it grows with frames × what the views show.

    It begins at one of the moments (`at`), or where the reader left the one `of` this run, and
    writes the step on screen into the address as `parameter`; `marks` are steps of the curves with
    a few words each.
    """
    planes = {
        f"{place} {key}": message
        for place, moment in enumerate(moments)
        for key, message in moment.messages.items()
    }
    header: dict[str, Any] = {
        "name": name,
        "of": of,
        "parameter": parameter,
        "at": at,
        "keys": sorted({key for moment in moments for key in moment.messages}),
        "steps": [moment.step for moment in moments],
        "captions": [[list(pair) for pair in moment.captions] for moment in moments],
        "curves": [
            {"name": curve.name, "share": curve.share, "points": _points(curve)} for curve in curves
        ],
        "marks": [list(mark) for mark in marks],
    }
    return wire.pack(header, planes)


def _points(curve: Curve) -> list[tuple[int, float | None]]:
    """Not-a-number and infinity leave a gap in the line."""
    return [(step, wire.finite(value)) for step, value in curve.points]
