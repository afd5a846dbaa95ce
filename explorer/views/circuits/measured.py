"""What the views of the Circuits page share: estimates, exact values and circuits, made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import streamlit as st

from explorer.analysis.ablation import QUICK
from explorer.analysis.circuit_curves import (
    DRAWS,
    CircuitPoint,
    circuit_curve,
    sizes,
    smallest_circuit,
)
from explorer.app import url
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.app.progress import bar, with_bar
from explorer.app.session import session
from explorer.catalog.opened_model import Opened
from explorer.circuits.made_finding import Measured
from explorer.circuits.measure import (
    METHODS,
    Scores,
    attributions,
    contrast_of,
    corrupted_passes,
    exact_writers,
    mean_over_pairs,
    pieces_of_writers,
    scores_of,
)
from explorer.circuits.text_pairs import Question
from explorer.inference.forward_pass import ForwardPassError
from explorer.inference.results_cache import if_kept, kept
from explorer.views.interventions.many_passes import is_started
from models.gradients import GradientError

BACKWARD = 3
"""A forward and a backward pass cost about so many forward passes."""
CIRCUIT = 3
"""A pass of a circuit costs about so many plain ones."""
PATCHED, MOST_PATCHED = 40, 200
"""Edges whose exact value is measured: as many as usual, and at most."""
Made = TypeVar("Made")


def choose_method(question: Question) -> str | None:
    """How edges and parts are estimated; None, and a sentence, where that says nothing."""
    method = one_of("Estimate", "attributed_by", tuple(METHODS))
    if METHODS[method] == 1 and question.why_no_gradient:
        st.text(question.why_no_gradient)
        return None
    return method


def scores_of_question(context: PageContext, question: Question, method: str) -> Scores | None:
    """The estimates of all pairs, made once; None, and a sentence or a button, where not."""
    opened, steps = context.opened, METHODS[method]
    key = _scores_key(question, method)
    cost = _passes(opened, question) * (1 + BACKWARD * steps)
    if not is_started("attribution", (opened.name, *key), cost):
        return None

    def measure() -> Scores:
        found = attributions(opened, question, steps)
        return scores_of(opened, with_bar(found, len(question.pairs), "Attribution"))

    return _or_say(lambda: kept(opened, key, measure, lambda made: made.nbytes))


@dataclass
class ExactSoFar:
    """The metric that each part carries, pair by pair, as far as it was measured."""

    by_pair: list[dict[int, float]] = field(default_factory=list)

    def mean(self, column: int) -> float | None:
        """Of the pairs in which this writer was patched; None where it was in none."""
        known = [each[column] for each in self.by_pair if column in each]
        return sum(known) / len(known) if known else None

    def means(self, columns: int) -> list[float | None]:
        """Of all writers."""
        return [self.mean(column) for column in range(columns)]

    @property
    def count(self) -> int:
        return sum(map(len, self.by_pair))


def exact_of_writers(context: PageContext, question: Question, scores: Scores) -> ExactSoFar:
    """The exact value of every part, as far as it is measured; a Stop button while it is.

    What was measured stays when it is stopped, and goes on from the pair where it was.
    """
    opened, columns = context.opened, len(scores.wiring.columns)
    key = _parts_key(question)
    total = columns * len(question.pairs)
    found = parts_so_far(opened, question, scores)
    if found.count == total:
        return found
    cost = cost_of_branches(opened, question) * columns
    place = st.container()
    with place:
        if not is_started("exact_parts", (opened.name, *key), cost):
            if found.count:
                st.text(f"Stopped: {found.count:,} of {total:,} values are measured.")
            return found
        with stoppable("exact_parts", cost), bar("Exact values, part by part") as report:
            _or_say(lambda: _measure(opened, question, found, report))
    return found


def parts_so_far(opened: Opened, question: Question, scores: Scores) -> ExactSoFar:
    """What `exact_of_writers` has measured until now."""
    total = len(scores.wiring.columns) * len(question.pairs)
    key = "exact parts", question.key
    found: ExactSoFar = kept(opened, key, ExactSoFar, lambda _: 100 * total)
    return found


def _measure(
    opened: Opened, question: Question, found: ExactSoFar, report: Callable[[float], None]
) -> None:
    pieces, pairs = pieces_of_writers(opened), question.pairs
    for at, pair in enumerate(pairs):
        if at < len(found.by_pair) - 1:
            continue
        if at == len(found.by_pair):
            found.by_pair.append({})
        for piece, (some, lost) in enumerate(exact_writers(contrast_of(opened, pair))):
            found.by_pair[at].update(zip(some, lost.tolist(), strict=True))
            report((at + (piece + 1) / pieces) / len(pairs))


def exact_of_edges(
    context: PageContext, question: Question, scores: Scores, method: str, count: int
) -> list[float] | None:
    """The exact values of the strongest edges, made once; None where they are not asked for."""
    opened, edges = context.opened, scores.strongest(count)
    key = _edges_key(question, method, count)
    cost = cost_of_branches(opened, question) * count
    if not is_started("exact_edges", (opened.name, *key), cost):
        return None

    def measure() -> list[float]:
        lost = [0.0] * len(edges)
        with bar("Exact values, edge by edge") as report:
            for done, (at, part) in enumerate(mean_over_pairs(opened, question, edges)):
                lost[at] += part
                report((done + 1) / (len(edges) * len(question.pairs)))
        return lost

    return _or_say(lambda: kept(opened, key, measure, lambda made: 8 * len(made)))


@dataclass(frozen=True)
class Curve:
    """Circuits of every size, and about how few edges restore 90 %."""

    points: tuple[CircuitPoint, ...]
    smallest: int | None


def curve_of(context: PageContext, question: Question, scores: Scores, method: str) -> Curve | None:
    """The circuits of every size, made once; None where they are not asked for yet."""
    opened = context.opened
    key = _curve_key(question, method)
    count = len(sizes(len(scores.order)))
    cost = _passes(opened, question) * CIRCUIT * (2 + DRAWS) * count
    if not is_started("circuit_curve", (opened.name, *key), cost):
        return None

    def measure() -> Curve:
        passes, clean = corrupted_passes(opened, question), sum(scores.clean) / len(scores.clean)
        steps = circuit_curve(passes, clean, scores.order)
        points = with_bar(steps, count, "Circuits of every size")
        return Curve(tuple(points), smallest_circuit(passes, clean, scores.order, points))

    return _or_say(lambda: kept(opened, key, measure, lambda made: 200 * len(made.points)))


def measured_by_now(opened: Opened, question: Question, method: str) -> Measured | None:
    """What the views have measured and is still kept; None before anything is estimated."""
    scores: Scores | None = if_kept(opened, _scores_key(question, method))
    if scores is None:
        return None
    parts: ExactSoFar = if_kept(opened, _parts_key(question)) or ExactSoFar()
    count = url.whole_number(url.current_value("patched_edges"), MOST_PATCHED + 1) or PATCHED
    count = min(count, len(scores.order))
    edges: list[float] | None = if_kept(opened, _edges_key(question, method, count))
    curve: Curve | None = if_kept(opened, _curve_key(question, method))
    return Measured(
        method=method,
        scores=scores,
        exact=[parts.mean(column) for column in range(len(scores.wiring.columns))],
        exact_edges=edges or [],
        points=curve.points if curve else (),
        smallest=curve.smallest if curve else None,
    )


def _scores_key(question: Question, method: str) -> tuple[object, ...]:
    return "circuit scores", question.key, method


def _parts_key(question: Question) -> tuple[object, ...]:
    return "exact parts", question.key


def _edges_key(question: Question, method: str, count: int) -> tuple[object, ...]:
    return "exact edges", question.key, method, count


def _curve_key(question: Question, method: str) -> tuple[object, ...]:
    return "circuit curve", question.key, method


def _passes(opened: Opened, question: Question) -> int:
    """Multiplications of one plain pass of every pair."""
    return sum(len(pair.clean) for pair in question.pairs) * _per_token(opened)


def cost_of_branches(opened: Opened, question: Question) -> int:
    """The same of one that branches off in the middle, and where the texts differ first."""
    differing = sum(len(pair.clean) - pair.differing[0] for pair in question.pairs)
    is_causal = opened.config.kind == "decoder"
    return differing * _per_token(opened) // 2 if is_causal else _passes(opened, question) // 2


def _per_token(opened: Opened) -> int:
    blocks = opened.model.last_stack.blocks.parameters()
    return sum(each.numel() for each in blocks)


@contextmanager
def stoppable(name: str, cost: int) -> Iterator[None]:
    """A Stop button beside work that was started under this name, while it lasts."""
    place = st.empty()
    if cost > QUICK:
        place.button("Stop", key=f"stop_{name}", on_click=_stop, args=(name,))
    yield
    place.empty()


def _stop(name: str) -> None:
    session().long_runs.pop(name, None)


def _or_say(make: Callable[[], Made]) -> Made | None:
    """What cannot be measured is said in a sentence."""
    try:
        return make()
    except (GradientError, ForwardPassError) as error:
        say(str(error))
        return None
