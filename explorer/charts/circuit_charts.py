"""Estimates and exact values, the effect of cutting edges, circuits by size, and steering."""

import math
from collections.abc import Mapping, Sequence

from torch import Tensor

from explorer.charts.vega_lite import (
    MIDDLE,
    Spec,
    around_zero,
    chart,
    curves_in_bands,
    finite,
    fixed,
    layer,
    number_line,
    number_text,
    quantity,
    ruler,
    text_line,
    vertical_rule,
)

STRONGEST_EDGES, RANDOM_EDGES = "the strongest edges", "as many random edges"
CIRCUIT_ALONE, ALL_BUT_CIRCUIT, RANDOM_ALONE = (
    "the circuit alone",
    "all but the circuit",
    "random edges alone",
)
RANDOM_ORDERS = "random orders"
DASHES = [[1, 0], [6, 2], [2, 2], [1, 3], [6, 2, 1, 2], [10, 4]]
"""Of more lines than the usual dashes, which repeat after the fifth."""
LOWEST_SHARE, HIGHEST_SHARE = -0.5, 1.5
"""Shares outside this range are drawn at its ends; the tooltip has their numbers."""
SMALLEST_KL = 1e-6
"""The axis reaches at least so far, or rounding errors would look like an effect."""
CLEAN, CORRUPTED = "clean", "corrupted"


def edge_cut_curves(
    counts: Sequence[int], strongest: Tensor, random: Tensor, scale: str = "KL in nats"
) -> Spec:
    """Two lines over the number of edges; that of random edges in the band of its samples.

    They are the divergences after the `strongest` (n,) or `random` (n, draws) edges are cut.
    """
    curves, band, numbers, ends = list[Spec](), list[Spec](), list[Spec](), list[float]()
    for edges, best, draws in zip(counts, strongest.tolist(), random, strict=True):
        mean, least, most = float(draws.mean()), float(draws.min()), float(draws.max())
        for which, value in ((STRONGEST_EDGES, best), (RANDOM_EDGES, mean)):
            curves.append({"edges": edges, "which": which, "KL": finite(value)})
        band.append({"edges": edges, "least": finite(least), "most": finite(most)})
        samples = _with_range(mean, least, most)
        numbers.append({"edges": edges, "strongest": number_text(best), "random": samples})
        ends += filter(math.isfinite, (best, most))
    y = fixed(0, max([*ends, SMALLEST_KL]) if ends else 1.0, zero=True)
    x = quantity("edges", title="edges cut", scale={"type": "log", "base": 2, "nice": False})
    kl, order = quantity("KL", title=scale, scale=y), [STRONGEST_EDGES, RANDOM_EDGES]
    lines = curves_in_bands(x, kl, curves, ("least", "most"), band, RANDOM_EDGES, sort=order)
    tooltip = [number_line("edges", places=0), text_line("strongest"), text_line("random")]
    return chart(*lines, ruler(x, tooltip, numbers))


def deletion_curves_chart(
    counts: Sequence[int], curves: Mapping[str, Tensor], random: Tensor, score: str
) -> Spec:
    """A line (points,) for each method, and the mean of random (draws, points) in their range."""
    means = {**curves, RANDOM_ORDERS: random.mean(0)}
    rows, band, numbers = list[Spec](), list[Spec](), list[Spec]()
    for at, count in enumerate(counts):
        here, draws = {which: float(of[at]) for which, of in means.items()}, random[:, at]
        rows += [{"tokens": count, "which": which, "value": here[which]} for which in here]
        band.append({"tokens": count, "least": float(draws.min()), "most": float(draws.max())})
        numbers.append({"tokens": count} | {which: number_text(here[which]) for which in here})
    ends = [*random.flatten().tolist(), *(row["value"] for row in rows)]
    least, top = min(ends), max(1e-6, *ends)
    x = quantity("tokens", title="tokens deleted", axis={"tickMinStep": 1})
    y = quantity("value", title=score, scale=fixed(0 if least < top / 2 else 2 * least - top, top))
    how = {"sort": [*means], "legend": {"columns": 3, "symbolOpacity": 1}}
    lines = curves_in_bands(x, y, rows, ("least", "most"), band, RANDOM_ORDERS, **how)
    lines[1]["encoding"]["strokeDash"]["scale"] = {"range": DASHES[: len(means)]}
    tooltip = [number_line("tokens", places=0), *map(text_line, means)]
    return chart(*lines, ruler(x, tooltip, numbers))


def estimate_and_exact(
    names: Sequence[str], kinds: Sequence[str], estimates: Sequence[float], exact: Sequence[float]
) -> Spec:
    """A point for each part: its estimate on x, its exact value on y, and the diagonal."""
    rows = [
        {"part": name, "kind": kind, "estimate": finite(about), "exact": finite(value)}
        for name, kind, about, value in zip(names, kinds, estimates, exact, strict=True)
    ]
    ends = around_zero([*estimates, *exact])
    scale, at = fixed(*ends), quantity("at", scale=fixed(*ends))
    diagonal = {"type": "line", "strokeDash": [3, 3], "strokeWidth": 1, "opacity": 0.6}
    points = layer(
        {"type": "point", "filled": True, "size": 46, "opacity": 0.8},
        rows,
        x=quantity("estimate", title="estimate", scale=scale),
        y=quantity("exact", title="exact", scale=scale),
        color={"field": "kind", "type": "nominal", "legend": {"symbolType": "circle"}},
        shape={"field": "kind", "type": "nominal"},
        tooltip=[text_line("part"), number_line("estimate"), number_line("exact")],
    )
    return chart(layer(diagonal, [{"at": end} for end in ends], x=at, y=at), points)


def circuit_curves(rows: Sequence[Mapping[str, float]], rule_at: int | None) -> Spec:
    """Three lines over the number of edges, that of random edges in the band of its samples.

    A row has `edges`, and the shares of `circuit`, `complement` and `random`, with the ends of
    the band, `low` and `high`. A rule marks the size `rule_at`.
    """
    names = {CIRCUIT_ALONE: "circuit", ALL_BUT_CIRCUIT: "complement", RANDOM_ALONE: "random"}
    curves: list[Spec] = [
        {"edges": row["edges"], "which": which, "share": _within(row[name])}
        for row in rows
        for which, name in names.items()
    ]
    band = [
        {"edges": row["edges"], "low": _within(row["low"]), "high": _within(row["high"])}
        for row in rows
    ]
    numbers = [
        {"edges": row["edges"]}
        | {which: number_text(row[name]) for which, name in names.items()}
        | {RANDOM_ALONE: _with_range(row["random"], row["low"], row["high"])}
        for row in rows
    ]
    shares = [row["share"] for row in curves if row["share"] is not None]
    y = fixed(min([0.0, *shares]) - 0.05, max([1.0, *shares]) + 0.05)
    sizes = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]
    axis = {"values": sizes, "format": ",", "labelOverlap": "greedy"}
    x = quantity("edges", title="edges", axis=axis, scale={"type": "log", "nice": False})
    share = quantity("share", title="share of the difference", scale=y)
    lines = curves_in_bands(x, share, curves, ("low", "high"), band, RANDOM_ALONE, sort=[*names])
    tooltip = [number_line("edges", places=0), *map(text_line, names)]
    return chart(*lines, vertical_rule(x, rule_at), ruler(x, tooltip, numbers))


def _with_range(value: float, low: float, high: float) -> str:
    return f"{number_text(value)} ({number_text(low)} to {number_text(high)})"


def _within(value: float) -> float | None:
    return min(HIGHEST_SHARE, max(LOWEST_SHARE, value)) if math.isfinite(value) else None


def steering_chart(
    over: str, places: Sequence[float], clean: Tensor, corrupted: Tensor, metric: str, chosen: float
) -> Spec:
    """A line for each kind of text in the band of its spread; a rule marks the chosen place.

    The `places` are those of the direction, `over` strength, layer or head; the metrics of the
    clean and of the corrupted texts are (pairs, places).
    """
    curves, band, ends = list[Spec](), list[Spec](), list[float]()
    numbers: list[Spec] = [{over: place} for place in places]
    for which, values in ((CLEAN, clean), (CORRUPTED, corrupted)):
        for row, of_pairs in zip(numbers, values.T, strict=True):
            mean = float(of_pairs.mean())
            spread = float(of_pairs.std()) if len(of_pairs) > 1 else 0.0
            at, least, most = {over: row[over], "which": which}, mean - spread, mean + spread
            curves.append(at | {"value": finite(mean)})
            band.append(at | {"least": finite(least), "most": finite(most)})
            row[which] = number_text(mean) + (f" ± {number_text(spread)}" if spread else "")
            ends += least, most
    places = [*places] or [0.0]
    whole = {} if over == "strength" else {"axis": {"tickMinStep": 1}}
    x = quantity(over, title=over, scale=fixed(min(places), max(*places, 1.0)), **whole)
    y, both = quantity("value", title=metric, scale=fixed(*around_zero(ends))), [CLEAN, CORRUPTED]
    faint = {"symbolOpacity": 1}  # the legend is not as faint as the band
    lines = curves_in_bands(x, y, curves, ("least", "most"), band, sort=both, legend=faint)
    rule = {"type": "rule", "strokeDash": [4, 4], "color": MIDDLE}
    tooltip = [number_line(over), text_line(CLEAN), text_line(CORRUPTED)]
    return chart(*lines, layer(rule, [{over: chosen}], x=x), ruler(x, tooltip, numbers))
