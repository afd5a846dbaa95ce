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
    top = max(1e-6, *(row["value"] for row in rows), *high)
    x = quantity("tokens", title="tokens deleted", axis={"tickMinStep": 1})
    y = quantity("value", title=score, scale=fixed(0, top, zero=True))
    legend = {"legend": {"columns": 3, "symbolOpacity": 1}}
    lines = curves_in_bands(x, y, rows, ("least", "most"), band, RANDOM, sort=[*means], **legend)
    tooltip = [number_line("tokens", places=0), *map(text_line, means)]
    return chart(*lines, ruler(x, tooltip, numbers))
