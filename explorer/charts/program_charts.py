"""The strongest program of every head as a coloured grid, and the loss by heads replaced."""

import math
from collections import Counter
from collections.abc import Sequence

from explorer.charts.vega_lite import (
    Spec,
    category,
    chart,
    colour_and_dash,
    finite,
    fixed,
    layer,
    number_line,
    quantity,
    text_line,
)

NAMED, OTHERS = 9, "other programs"
LEGEND, SYMLOG = {"labelLimit": 320, "columns": 3}, {"type": "symlog", "nice": False}
SQUARES = {"symbolOpacity": 1, "symbolType": "square"}
TICKS = {"values": [0, *(n * 10**power for power in range(4) for n in (1, 2, 5))], "format": ",d"}
BY_PROGRAM, BY_UNIFORM = "the best described, by their programs", "random heads, by a uniform map"


def program_grid(
    heads: Sequence[tuple[str | int, int, str, str, float]], down: str, across: str
) -> Spec:
    """A coloured cell for each row: where it stands `down` and `across`, its program and mixture.

    The most frequent programs have a colour each; a smaller overlap, the last number, is paler.
    """
    counts = Counter(program for _, _, program, _, _ in heads)
    named = [program for program, _ in counts.most_common(NAMED)]
    rows = [
        {down: y, across: x, "mixture": mixture, "overlap": finite(overlap)}
        | {"program": program if program in named else OTHERS}
        for y, x, program, mixture, overlap in heads
    ]
    axis = {"labelAngle": 0, "labelOverlap": "greedy"}
    domain = [*named, *([OTHERS] if len(counts) > NAMED else [])]
    colour = category("program", scale={"domain": domain}, legend=LEGEND | SQUARES)
    shade = quantity("overlap", scale=fixed(0, 1, range=[0.25, 1]), legend=None)
    where = {
        name: {"field": field, "type": "ordinal", "sort": None, "axis": axis}
        for name, field in (("x", across), ("y", down))
    }
    words = [text_line(down), text_line(across), text_line("mixture"), number_line("overlap")]
    return chart(layer({"type": "rect"}, rows, **where, color=colour, opacity=shade, tooltip=words))


def replacement_curves(points: Sequence[tuple[int, float, float]]) -> Spec:
    """Two lines over the number of heads replaced; a point has both losses in nats."""
    rows = [
        {"heads": heads, "which": which, "loss": finite(loss)}
        for heads, *losses in points
        for which, loss in zip((BY_PROGRAM, BY_UNIFORM), losses, strict=True)
    ]
    ends = [loss for _, *losses in points for loss in losses if math.isfinite(loss)] or [0.0]
    return chart(
        layer(
            {"type": "line", "point": {"size": 22}},
            rows,
            x=quantity("heads", title="heads replaced", axis=TICKS, scale=SYMLOG),
            y=quantity("loss", title="loss in nats", scale=fixed(min(ends), max(ends))),
            **colour_and_dash("which", legend=LEGEND),
            tooltip=[number_line("heads", places=0), text_line("which"), number_line("loss")],
        )
    )
