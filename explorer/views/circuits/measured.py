"""What the views of the Circuits page share: estimates, exact values and circuits, made once."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.attribution_patching import Attribution
from explorer.analysis.circuit_curves import (
    RANDOM_CIRCUITS,
    CircuitPoint,
    circuit_point,
    random_orders,
    sizes,
    smallest_circuit,
)
from explorer.analysis.circuits.finding import Measured
from explorer.analysis.circuits.measure import (
    METHODS,
    EdgeScores,
    attribution_of,
    contrast_of,
    corrupted_passes,
    exact_writers,
    scores_of,
)
from explorer.analysis.circuits.text_pairs import (
    Question,
)
from explorer.analysis.exact_edges import exact_edges
from explorer.app import url
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.catalog.open_model import OpenModel
from explorer.inference.results_cache import if_kept, kept
from explorer.views.shared.measurement import measurements

BACKWARD = 3
"""A forward and a backward pass cost about so many forward passes."""
CIRCUIT = 3
"""A pass of a circuit costs about so many plain ones."""
"""Edges whose exact value is measured: as many as usual, and at most."""
WHAT_EAP_IS = (
    "EAP is edge attribution patching, by the gradient at the clean text. EAP-IG takes the mean "
    f"gradient over {METHODS['EAP-IG']} points on the way from the corrupted text to it."
)
Key = tuple[object, ...]


def choose_method(question: Question) -> str | None:
    """How edges and parts are estimated; None, and a sentence, where that says nothing."""
    method = one_of("attributed_by", tuple(METHODS), help=WHAT_EAP_IS)
    if METHODS[method] == 1 and question.why_no_gradient:
        st.text(question.why_no_gradient)
        return None
    return method


def scores_of_question(context: PageContext, question: Question, method: str) -> EdgeScores | None:
    """The estimates of all pairs, made once; None, and a sentence or a button, where not."""
    opened, steps = context.opened, METHODS[method]
    key = _scores_key(question, method)
    if (ready := if_kept(opened, key)) is not None:
        found: EdgeScores = ready
        return found
    pieces = measurements(
        opened,
        "attribution",
        [("attribution", pair.texts, question.metric, method) for pair in question.pairs],
        lambda at: attribution_of(opened, question.pairs[at], steps),
        _size_of_attribution,
        cost=cost_of_passes(opened, question) * (1 + BACKWARD * steps),
        doing="Attribution",
        too_long=TOO_LONG_FOR_PAIRS,
    )
    if pieces is None:
        return None
    return kept(opened, key, lambda: scores_of(opened, pieces), lambda made: made.nbytes)


def _size_of_attribution(made: Attribution) -> int:
    return made.writers.nbytes + (0 if made.edges is None else made.edges.nbytes)


def exact_of_writers(context: PageContext, question: Question) -> list[float] | None:
    """The exact value of every part, the mean over all pairs; None while some are not patched."""
    opened = context.opened
    columns = len(opened.model.last_stack.blocks) * (opened.config.n_heads + 1) + 1
    pieces = measurements(
        opened,
        "exact_parts",
        _parts_keys(question),
        lambda at: _exact_of_pair(opened, question, at),
        lambda made: made.nbytes,
        cost=2 * cost_of_passes(opened, question) + cost_of_branches(opened, question) * columns,
        doing="Exact values, pair by pair",
        too_long=TOO_LONG_FOR_PAIRS,
    )
    return None if pieces is None else _mean(pieces)


def exact_by_now(opened: OpenModel, question: Question) -> list[float] | None:
    """What `exact_of_writers` gives, where it has been measured."""
    pieces = [if_kept(opened, key) for key in _parts_keys(question)]
    return None if any(each is None for each in pieces) else _mean(pieces)


def _exact_of_pair(opened: OpenModel, question: Question, at: int) -> Tensor:
    contrast = contrast_of(opened, question.pairs[at])
    pieces = list(exact_writers(contrast))
    found = torch.zeros(sum(len(columns) for columns, _ in pieces))
    for columns, lost in pieces:
        found[columns] = lost
    return found


def _mean(pieces: Sequence[Tensor]) -> list[float]:
    mean: list[float] = torch.stack(list(pieces)).mean(0).tolist()
    return mean


def exact_of_edges(
    context: PageContext, question: Question, scores: EdgeScores, method: str, count: int
) -> list[float] | None:
    """The exact values of the strongest edges, the mean over all pairs; None while not all are."""
    opened, edges = context.opened, scores.strongest(count)

    def measure(at: int) -> Tensor:
        lost = torch.zeros(len(edges))
        for place, value in exact_edges(contrast_of(opened, question.pairs[at]), edges):
            lost[place] = value
        return lost

    pieces = measurements(
        opened,
        "exact_edges",
        _edges_keys(question, method, count),
        measure,
        lambda made: made.nbytes,
        cost=2 * cost_of_passes(opened, question) + cost_of_branches(opened, question) * count,
        doing="Exact values of edges, pair by pair",
        too_long=TOO_LONG_FOR_PAIRS,
    )
    return None if pieces is None else _mean(pieces)


@dataclass(frozen=True)
class FaithfulnessCurve:
    """Circuits of every size, and about how few edges restore 90 %."""

    points: tuple[CircuitPoint, ...]
    smallest: int | None


def curve_of(
    context: PageContext, question: Question, scores: EdgeScores, method: str
) -> FaithfulnessCurve | None:
    """The circuits of every size, made once; None where they are not asked for yet."""
    opened, key = context.opened, _curve_key(question, method)
    if (ready := if_kept(opened, key)) is not None:
        curve: FaithfulnessCurve = ready
        return curve
    counts = sizes(len(scores.order))
    passes, clean = corrupted_passes(opened, question), sum(scores.clean) / len(scores.clean)
    draws = random_orders(scores.order)
    points = measurements(
        opened,
        "circuit_curve",
        [(*key, count) for count in counts],
        lambda at: circuit_point(passes, clean, scores.order, draws, counts[at]),
        lambda _: 200,
        cost=cost_of_passes(opened, question) * CIRCUIT * (2 + RANDOM_CIRCUITS) * len(counts),
        doing="Circuits of every size",
        too_long=TOO_LONG_FOR_PAIRS,
    )
    if points is None:
        return None
    return kept(
        opened,
        key,
        lambda: FaithfulnessCurve(
            tuple(points), smallest_circuit(passes, clean, scores.order, points)
        ),
        lambda made: 200 * len(made.points),
    )


def measured_by_now(opened: OpenModel, question: Question, method: str) -> Measured | None:
    """What the views have measured and is still kept; None before anything is estimated."""
    scores: EdgeScores | None = if_kept(opened, _scores_key(question, method))
    if scores is None:
        return None
    row = url.row_of("patched_edges")
    count = url.whole_number(url.current_value(row.name), int(row.high) + 1) or row.usual
    count = min(count, len(scores.order))
    edges = [if_kept(opened, key) for key in _edges_keys(question, method, count)]
    curve: FaithfulnessCurve | None = if_kept(opened, _curve_key(question, method))
    return Measured(
        method=method,
        scores=scores,
        exact=exact_by_now(opened, question) or [None] * len(scores.wiring.columns),
        exact_edges=[] if any(each is None for each in edges) else _mean(edges),
        points=curve.points if curve else (),
        smallest=curve.smallest if curve else None,
    )


def _scores_key(question: Question, method: str) -> Key:
    return "circuit scores", question.key, method


def _parts_keys(question: Question) -> list[Key]:
    return [("exact parts", pair.texts, question.metric) for pair in question.pairs]


def _edges_keys(question: Question, method: str, count: int) -> list[Key]:
    """What the strongest edges are follows from the whole question."""
    pairs = range(len(question.pairs))
    return [("exact edges", question.key, method, count, pair) for pair in pairs]


def _curve_key(question: Question, method: str) -> Key:
    return "circuit curve", question.key, method


TOO_LONG_FOR_PAIRS = (
    "So many passes of this model take too long: take fewer pairs, or shorten the texts."
)


def cost_of_passes(opened: OpenModel, question: Question) -> int:
    """Multiplications of one plain pass of every pair."""
    return sum(len(pair.clean) for pair in question.pairs) * _per_token(opened)


def cost_of_branches(opened: OpenModel, question: Question) -> int:
    """The same of one that branches off in the middle, and where the texts differ first."""
    differing = sum(len(pair.clean) - pair.differing[0] for pair in question.pairs)
    is_causal = opened.config.kind == "decoder"
    if not is_causal:
        return cost_of_passes(opened, question) // 2
    return differing * _per_token(opened) // 2


def _per_token(opened: OpenModel) -> int:
    blocks = opened.model.last_stack.blocks.parameters()
    return sum(each.numel() for each in blocks)
