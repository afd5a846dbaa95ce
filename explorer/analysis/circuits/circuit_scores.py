"""What is measured for a question: estimates of all parts and edges, exact values, circuits.

Long work is a generator, so that a page or a command line can show its progress and stop it.
Shapes as in `explorer.analysis.wiring`: r readers, w writers.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import fmean

import torch
from torch import Tensor

from explorer.analysis.ablation_and_patching import exact_edges
from explorer.analysis.attribution_patching import Attribution, attribute, attribute_writers
from explorer.analysis.circuit_faithfulness import NestedCircuits, corrupted_pass, strongest_edges
from explorer.analysis.circuit_metrics import KL, Contrast
from explorer.analysis.circuits.text_pairs import Question, TokenPair
from explorer.analysis.wiring import (
    CircuitNode,
    Edge,
    Place,
    Wiring,
    WiringError,
    plain_wiring,
    wiring_of,
)
from explorer.catalog.opened_model import OpenModel
from explorer.inference.model_inputs import ids_of

METHODS = {"EAP-IG": 5, "EAP": 1}
"""Steps between the corrupted and the clean embedding, by the name of the method."""


@dataclass(frozen=True, eq=False)
class EdgeScores:
    """Estimates of parts and edges, the means over all pairs, and their standard deviations.

    `edges` and its spread are None for a model without edges, and `why_no_edges` says why. The
    spreads of a single pair are None.
    """

    wiring: Wiring
    writers: Tensor
    writers_spread: Tensor | None
    edges: Tensor | None
    edges_spread: Tensor | None
    clean: tuple[float, ...]
    corrupted: tuple[float, ...]
    why_no_edges: str = ""

    @property
    def nbytes(self) -> int:
        """With the order of the edges and the mask of edges, which are made on first use."""
        tensors = (self.writers, self.writers_spread, self.edges, self.edges_spread)
        count = sum(tensor.nbytes for tensor in tensors if tensor is not None)
        if self.edges is None:
            return count
        return count + self.edges.numel() + torch.long.itemsize * self.wiring.edges

    @property
    def difference(self) -> float:
        """The mean of the metric over the clean texts minus that over the corrupted ones."""
        return (sum(self.clean) - sum(self.corrupted)) / len(self.clean)

    @cached_property
    def order(self) -> Tensor:
        """The places of all edges in the flattened (r, w), the strongest first."""
        if self.edges is None:
            return torch.zeros(0, dtype=torch.long)
        return strongest_edges(self.edges, self.wiring.is_edge)

    def strongest(self, count: int) -> list[tuple[int, int]]:
        """The strongest edges as (reader, writer)."""
        columns = len(self.wiring.columns)
        return [divmod(place, columns) for place in self.order[:count].tolist()]

    def strongest_edges(self, count: int, exact: Sequence[float] = ()) -> list[Edge]:
        """The strongest edges, with the exact values of the first of them."""
        return [
            self.edge(*place, value)
            for place, value in zip(self.strongest(count), [*exact, *[None] * count], strict=False)
        ]

    def edge(self, reader: int, writer: int, exact: float | None = None) -> Edge:
        assert self.edges is not None
        spread = self.edges_spread
        to = self.wiring.rows[reader]
        return Edge(
            node_of(self.wiring.columns[writer]),
            node_of(to),
            to.reads,
            float(self.edges[reader, writer]),
            None if spread is None else float(spread[reader, writer]),
            exact,
        )


def node_of(place: Place) -> CircuitNode:
    return CircuitNode(place.kind, place.layer, place.head)


def contrast_of(opened: OpenModel, pair: TokenPair) -> Contrast:
    clean, corrupted = ids_of([pair.clean]), ids_of([pair.corrupted])
    contrast = Contrast(opened.model, clean, corrupted, pair.place, pair.outcome)
    if len(pair.clean) == len(pair.corrupted):
        return contrast
    return replace(contrast, corrupted_place=pair.corrupted_place, partners=pair.partners)


def attributions(opened: OpenModel, question: Question, steps: int) -> Iterator[Attribution]:
    yield from (attribution_of(opened, pair, steps) for pair in question.pairs)


def attribution_of(opened: OpenModel, pair: TokenPair, steps: int) -> Attribution:
    """The estimates of one pair, with edges where the model has any."""
    score = attribute if why_no_edges(opened) == "" else attribute_writers
    return score(contrast_of(opened, pair), steps)


def why_no_edges(opened: OpenModel) -> str:
    """Why this model has no edges, in a sentence; empty where it has."""
    try:
        wiring_of(opened.config)
    except WiringError as error:
        return str(error)
    return ""


def scores_of(opened: OpenModel, estimates: Sequence[Attribution]) -> EdgeScores:
    """The means of these estimates over the pairs."""
    edges = [of_pair.edges for of_pair in estimates if of_pair.edges is not None]
    writers = torch.stack([of_pair.writers for of_pair in estimates])
    return EdgeScores(
        plain_wiring(opened.config),
        writers.mean(0),
        writers.std(0) if len(estimates) > 1 else None,
        torch.stack(edges).mean(0) if edges else None,
        torch.stack(edges).std(0) if len(edges) > 1 else None,
        tuple(of_pair.clean for of_pair in estimates),
        tuple(of_pair.corrupted for of_pair in estimates),
        why_no_edges(opened),
    )


def pieces_of_writers(opened: OpenModel) -> int:
    """How many pieces `exact_writers` yields."""
    wiring = plain_wiring(opened.config)
    return wiring.layers * (1 + wiring.has_mlp) + 1


def mean_over_pairs(
    opened: OpenModel, question: Question, edges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, float]]:
    """The exact value of each edge for one pair after another, divided by the number of pairs.

    Yields the place of the edge in `edges` and the value: the values of a place sum to its mean.
    """
    for pair in question.pairs:
        for at, lost in exact_edges(contrast_of(opened, pair), edges):
            yield at, lost / len(question.pairs)


def nested_circuits(opened: OpenModel, question: Question, scores: EdgeScores) -> NestedCircuits:
    """The circuits of the strongest edges by these scores."""
    contrasts = [contrast_of(opened, pair) for pair in question.pairs]
    passes = partial(map, corrupted_pass, contrasts)
    return NestedCircuits(passes, scores.wiring.is_edge, scores.order, fmean(scores.clean))


def correlation(estimates: Sequence[float], exact: Sequence[float]) -> float | None:
    """Pearson's r; None where one of them does not vary."""
    both = torch.tensor([estimates, exact], dtype=torch.double)
    if both.shape[1] < 2 or bool((both.std(1) == 0).any()):
        return None
    return float(torch.corrcoef(both)[0, 1])


@dataclass(frozen=True, eq=False)
class ScoresAtStep:
    """The estimates with the weights at one step of training."""

    step: int
    scores: EdgeScores


def why_not_over_training(question: Question) -> str:
    """Why a metric cannot be measured over training, in a sentence; empty where it can."""
    if question.metric != KL:
        return ""
    return (
        "KL divergence is measured from the trained model's own answer, which earlier steps do "
        "not have: choose another metric."
    )


def over_training(
    question: Question, snapshots: Iterable[tuple[int, OpenModel]], steps: int
) -> Iterator[ScoresAtStep]:
    """The estimates of every edge with the weights of one snapshot after another."""
    for step, opened in snapshots:
        estimates = [attribute(contrast_of(opened, pair), steps) for pair in question.pairs]
        yield ScoresAtStep(step, scores_of(opened, estimates))
