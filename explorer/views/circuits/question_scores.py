"""What the views of the Circuits page share: cached estimates, exact values and circuits.

The finding is a download of them, beside those of a file.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.ablation_and_patching import exact_edges, exact_writers
from explorer.analysis.circuit_faithfulness import RANDOM_CIRCUITS, CircuitPoint, sizes
from explorer.analysis.circuit_metrics import Contrast, why_no_gradient
from explorer.analysis.circuits.circuit_scores import (
    METHODS,
    EdgeScores,
    attribution_of,
    contrast_of,
    correlation,
    nested_circuits,
    scores_of,
)
from explorer.analysis.circuits.finding import CircuitMeasurement, Finding, finding_of
from explorer.analysis.circuits.text_pairs import Question
from explorer.analysis.wiring import plain_wiring
from explorer.app import address
from explorer.app.context import PageContext
from explorer.app.controls import one_of, popover
from explorer.catalog.opened_model import OpenModel
from explorer.charts.figure_data import file_name
from explorer.inference.results_cache import cached, if_cached
from explorer.text.number_format import three
from explorer.views.shared.measurement import Report, measurements
from explorer.views.shared.tables import strongest_table

BACKWARD = 3
"""The cost of a forward and a backward pass, in forward passes."""
CIRCUIT = 3
"""The cost of a pass of a circuit, in plain passes."""
WHAT_EAP_IS = (
    "EAP is edge attribution patching, by the gradient at the clean text. EAP-IG takes the mean "
    f"gradient over {METHODS['EAP-IG']} points on the way from the corrupted text to it."
)
TOO_LONG_FOR_PAIRS = "So many passes take too long here: take fewer pairs, or shorten the texts."
STRONGEST = 10
Key = tuple[object, ...]


def choose_method(question: Question) -> str | None:
    """The method of the estimates; None, and a sentence, where it cannot estimate the metric."""
    method = one_of("attributed_by", tuple(METHODS), help=WHAT_EAP_IS)
    if METHODS[method] == 1 and (why := why_no_gradient(question.metric)):
        st.text(why)
        return None
    return method


def scores_of_question(opened: OpenModel, question: Question, method: str) -> EdgeScores | None:
    """The estimates over all pairs; cached. Without them it shows a sentence or a button."""
    key, steps = _key("scores", question, method), METHODS[method]
    if (scores := if_cached(opened, key)) is not None:
        return cast(EdgeScores, scores)
    pieces = measurements(
        opened,
        "attribution",
        [("attribution", pair.texts, question.metric, method) for pair in question.pairs],
        lambda at, _: attribution_of(opened, question.pairs[at], steps),
        cost=cost_of_passes(opened, question) * (1 + BACKWARD * steps),
        doing="Estimating how much every edge carries",
        too_long=TOO_LONG_FOR_PAIRS,
    )
    if pieces is None:
        return None
    return cached(opened, key, lambda: scores_of(opened, pieces), lambda scores: scores.nbytes)


def exact_of_parts(opened: OpenModel, question: Question) -> list[float] | None:
    """The exact value of every part, the mean over all pairs; None until all are patched."""
    parts, keys = len(plain_wiring(opened.config).columns), _parts_keys(question)
    return _exact(opened, question, "exact_parts", keys, exact_writers, parts, "Exact values")


def exact_of_edges(
    opened: OpenModel, question: Question, scores: EdgeScores, method: str, count: int
) -> list[float] | None:
    """The exact values of the strongest edges, means over all pairs; None until all are patched."""
    exact = partial(exact_edges, edges=scores.strongest(count))
    keys = _edges_keys(question, method, count)
    return _exact(opened, question, "exact_edges", keys, exact, count, "Exact values of edges")


def _exact(
    opened: OpenModel,
    question: Question,
    name: str,
    keys: Sequence[Key],
    exact: Callable[[Contrast], Iterable[tuple[Any, Any]]],
    count: int,
    doing: str,
) -> list[float] | None:
    """The means of `count` exact values; `exact` yields the places and values of a pair."""

    def measure(at: int, _: Report) -> Tensor:
        lost = torch.zeros(count)
        for places, values in exact(contrast_of(opened, question.pairs[at])):
            lost[places] = values
        return lost

    pieces = measurements(
        opened,
        name,
        keys,
        measure,
        cost=2 * cost_of_passes(opened, question) + cost_of_branches(opened, question) * count,
        doing=f"{doing}, pair by pair",
        too_long=TOO_LONG_FOR_PAIRS,
    )
    return None if pieces is None else _mean(pieces)


def _mean(pieces: Sequence[Tensor]) -> list[float]:
    return cast(list[float], torch.stack(list(pieces)).mean(0).tolist())


def cached_exact_values(opened: OpenModel, keys: Sequence[Key]) -> list[float]:
    """The means over all pairs; empty until every pair is measured."""
    pieces = [if_cached(opened, key) for key in keys]
    return [] if any(piece is None for piece in pieces) else _mean(pieces)


def cached_exact_parts(
    opened: OpenModel, question: Question, scores: EdgeScores
) -> Sequence[float | None]:
    """The result of `exact_of_parts`, with None for every part until all are patched."""
    return cached_exact_values(opened, _parts_keys(question)) or [None] * len(scores.writers)


def curve_of(
    opened: OpenModel, question: Question, scores: EdgeScores, method: str
) -> tuple[tuple[CircuitPoint, ...], int | None] | None:
    """Circuits of every size, and the edges of the smallest that restores 90 %; cached.

    None until the reader starts them.
    """
    key = _key("curve", question, method)
    if (curve := if_cached(opened, key)) is not None:
        return cast(tuple[tuple[CircuitPoint, ...], int | None], curve)
    counts = sizes(len(scores.order))
    circuits = nested_circuits(opened, question, scores)
    draws = circuits.random_orders()
    points = measurements(
        opened,
        "circuit_curve",
        [(*key, count) for count in counts],
        lambda at, _: circuits.point(draws, counts[at]),
        cost=cost_of_passes(opened, question) * CIRCUIT * (2 + RANDOM_CIRCUITS) * len(counts),
        doing="Circuits of every size",
        too_long=TOO_LONG_FOR_PAIRS,
    )
    if points is None:
        return None
    return cached(opened, key, lambda: (tuple(points), circuits.smallest(points)))


def cached_measurement(
    opened: OpenModel, question: Question, method: str
) -> CircuitMeasurement | None:
    """The measurements in the cache; None before there are estimates."""
    scores: EdgeScores | None = if_cached(opened, _key("scores", question, method))
    if scores is None:
        return None
    row = address.row_of("patched_edges")
    count = address.whole_number(address.current_value(row.name), int(row.high) + 1) or row.usual
    edges = _edges_keys(question, method, min(count, len(scores.order)))
    curve = if_cached(opened, _key("curve", question, method)) or ((), None)
    exact = cached_exact_parts(opened, question, scores)
    return CircuitMeasurement(method, scores, exact, cached_exact_values(opened, edges), *curve)


def _key(kind: str, question: Question, *more: object) -> Key:
    return f"circuit {kind}", question.key, *more


def _parts_keys(question: Question) -> list[Key]:
    return [("exact parts", pair.texts, question.metric) for pair in question.pairs]


def _edges_keys(question: Question, method: str, count: int) -> list[Key]:
    """The keys name the whole question, because all pairs decide which edges are the strongest."""
    return [_key("edges", question, method, count, at) for at in range(len(question.pairs))]


def cost_of_passes(opened: OpenModel, question: Question) -> int:
    """Multiplications of one plain pass of every pair."""
    return sum(len(pair.clean) for pair in question.pairs) * cost_per_token(opened)


def cost_of_branches(opened: OpenModel, question: Question) -> int:
    """Multiplications of one pass of every pair that branches off in the middle layer, from the
    first differing token on."""
    if opened.config.kind != "decoder":
        return cost_of_passes(opened, question) // 2
    firsts = (min(pair.differing_places, default=0) for pair in question.pairs)
    differing = sum(len(pair.clean) for pair in question.pairs) - sum(firsts)
    return differing * cost_per_token(opened) // 2


def cost_per_token(opened: OpenModel) -> int:
    return sum(weight.numel() for weight in opened.model.last_stack.blocks.parameters())


def scores_table(
    axis: str,
    names: Sequence[str],
    method: str,
    estimates: Sequence[float],
    exact: Sequence[float | None] = (),
    spread: Sequence[float | None] = (),
    *,
    most: int = STRONGEST,
    error: float = 0.0,
    more: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """A row for each of the largest estimates; an exact value that is not measured yet is empty."""
    columns = dict(more or {})
    if exact:
        columns["exact"] = ["" if value is None else three(value, error) for value in exact]
    if any(value is not None for value in spread):
        columns["spread"] = ["" if value is None else three(value) for value in spread]
    strongest_table(estimates, {axis: names}, method, most=most, more=columns)


def draw_finding(context: PageContext, question: Question, opened: Finding | None) -> None:
    """The panel at the end of the page."""
    if opened is not None:
        _draw_comparison(context, question, opened)
    method = address.current_value("attributed_by")
    method = method if method in METHODS else next(iter(METHODS))
    with popover("finding", ":material/description:") as panel:
        if not panel.open:
            return
        measurement = cached_measurement(context.opened, question, method)
        if measurement is None:
            st.text(f"There are no estimates by {method} yet: the view Heads makes them.")
            return
        st.caption(_contents(measurement))
        finding = finding_of(context.opened, question, measurement)
        st.download_button(
            "Download the finding",
            data=finding.to_json().encode(),
            file_name=f"{file_name(f'{finding.model} circuit')}.json",
            key="download_finding",
            on_click="ignore",
        )


def _contents(measurement: CircuitMeasurement) -> str:
    """What the file contains, and which view measures what is missing."""
    exact = sum(value is not None for value in measurement.exact)
    sentences = [
        f"The pairs, the metric, and estimates by {measurement.method} of "
        f"{len(measurement.exact):,} parts and the strongest edges.",
        f"Exact values of {exact:,} parts and {len(measurement.exact_edges):,} edges."
        if exact or measurement.exact_edges
        else "No exact values yet: the views Heads and Circuit measure them.",
    ]
    if not measurement.points:
        sentences.append("No circuits of every size yet: the view Circuit runs them.")
    return " ".join(sentences)


def _draw_comparison(context: PageContext, question: Question, finding: Finding) -> None:
    """The measurements in the file beside those of the chosen model for the same question."""
    st.markdown("**The finding that was opened**")
    here, estimates = cached_measurement(context.opened, question, finding.method), {}
    if here is None:
        st.text(f"Open the view Heads with {finding.method} to see the chosen model beside it.")
    else:
        places = zip(here.scores.wiring.columns, here.scores.writers.tolist(), strict=True)
        estimates = {(at.layer, at.head): value for at, value in places if at.kind == "head"}
    heads = [(head.layer, head.head) for head in finding.heads]
    here_values = [three(estimates[head]) if head in estimates else "" for head in heads]
    scores_table(
        "head",
        [f"{layer}.{head}" for layer, head in heads],
        finding.method,
        [head.estimate for head in finding.heads],
        exact=[head.exact for head in finding.heads],
        more={f"{finding.method} here": here_values} if estimates else None,
    )
    both = [place for place, head in enumerate(heads) if head in estimates]
    there = [finding.heads[place].estimate for place in both]
    if (r := correlation(there, [estimates[heads[place]] for place in both])) is not None:
        st.text(f"Pearson's r of the estimates of {len(both)} heads, there and here: {three(r)}.")
    if finding.minimum is not None:
        now = "" if here is None or here.smallest is None else f", here {here.smallest:,}"
        st.text(
            "Edges of the smallest circuit tried that restores 90 % of the difference: "
            f"{finding.minimum:,} of {finding.edges_in_all:,} in the finding{now}."
        )
