"""The strongest program of every head as a coloured grid."""

from collections import Counter
from collections.abc import Sequence

from explorer.charts.vega_lite import (
    Spec,
    category,
    chart,
    finite,
    fixed,
    layer,
    number_line,
    quantity,
    text_line,
)
from explorer.inference.token_programs import Mixture, mixture_words

NAMED, OTHERS = 9, "other programs"
LEGEND = {"labelLimit": 320, "columns": 3, "symbolOpacity": 1, "symbolType": "square"}


def program_grid(
    heads: Sequence[tuple[str | int, int, Mixture, float]], down: str, across: str
) -> Spec:
    """A cell for each mixture and overlap at its place `down` and `across`.

    The most frequent strongest programs have a colour each; a smaller overlap is paler.
    """
    counts = Counter(mixture[0][0] for _, _, mixture, _ in heads)
    named = [program for program, _ in counts.most_common(NAMED)]
    rows = [
        {down: y, across: x, "mixture": mixture_words(mixture), "overlap": finite(overlap)}
        | {"program": mixture[0][0] if mixture[0][0] in named else OTHERS}
        for y, x, mixture, overlap in heads
    ]
    domain = [*named, *([OTHERS] if len(counts) > NAMED else [])]
    axis = {"labelAngle": 0, "labelOverlap": "greedy"}
    drawn = layer(
        {"type": "rect"},
        rows,
        x=category(across, axis=axis),
        y=category(down, axis=axis),
        color=category("program", scale={"domain": domain}, legend=LEGEND),
        opacity=quantity("overlap", scale=fixed(0, 1, range=[0.25, 1]), legend=None),
        tooltip=[text_line(down), text_line(across), text_line("mixture"), number_line("overlap")],
    )
    return chart(drawn)
