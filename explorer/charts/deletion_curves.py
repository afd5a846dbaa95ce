"""The probability of an answer against the number of deleted tokens."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from explorer.charts.vega_lite import (
    Spec,
    chart,
    curves_in_bands,
    fixed,
    number_line,
    number_text,
    quantity,
    ruler,
    text_line,
)

RANDOM = "random orders"
DASHES = [[1, 0], [6, 2], [2, 2], [1, 3], [6, 2, 1, 2], [10, 4]]
"""One for each method and one for random orders: the usual ones repeat after the fifth."""


def deletion_curves_chart(
    counts: Sequence[int], curves: Mapping[str, Tensor], random: Tensor, score: str
) -> Spec:
    """A line (points,) for each method, and the mean of random (draws, points) in their range."""
    means = {**curves, RANDOM: random.mean(0)}
    low, high = random.amin(0).tolist(), random.amax(0).tolist()
    rows = [
        {"tokens": count, "which": which, "value": float(curve[at])}
        for which, curve in means.items()
        for at, count in enumerate(counts)
    ]
    band = [
        {"tokens": count, "least": least, "most": most}
        for count, least, most in zip(counts, low, high, strict=True)
    ]
    numbers = [
        {"tokens": count} | {which: number_text(float(of[at])) for which, of in means.items()}
        for at, count in enumerate(counts)
    ]
    ends = [*low, *high, *(row["value"] for row in rows)]
    least, top = min(ends), max(1e-6, *ends)
    bottom = 0.0 if least < top / 2 else 2 * least - top
    x = quantity("tokens", title="tokens deleted", axis={"tickMinStep": 1})
    y = quantity("value", title=score, scale=fixed(bottom, top))
    legend = {"legend": {"columns": 3, "symbolOpacity": 1}}
    lines = curves_in_bands(x, y, rows, ("least", "most"), band, RANDOM, sort=[*means], **legend)
    lines[1]["encoding"]["strokeDash"]["scale"] = {"range": DASHES[: len(means)]}
    tooltip = [number_line("tokens", places=0), *map(text_line, means)]
    return chart(*lines, ruler(x, tooltip, numbers))
