"""A question measured: the metric of each of its texts, and means over its pairs."""

from pathlib import Path

import pytest
import torch

from explorer.analysis.ablation_and_patching import exact_edges, exact_writers
from explorer.analysis.attribution_patching import attribute, attribute_writers
from explorer.analysis.circuit_metrics import LOGIT_DIFFERENCE, metrics_of
from explorer.analysis.circuits.circuit_scores import (
    METHODS,
    attributions,
    contrast_of,
    correlation,
    mean_over_pairs,
    nested_circuits,
    node_of,
    pieces_of_writers,
    scores_of,
    why_no_edges,
)
from explorer.analysis.circuits.text_pairs import Question, TextPair, question_of
from explorer.catalog.opened_model import OpenModel, open_checkpoint
from explorer.catalog.shipped import SHIPPED
from models import trace
from tests.closeness import assert_close_to

PAIRS = {
    "induction": (("abcdeabcdeab", "adcbeadcbeab"), ("abcdefab", "afcdebab")),
    "negation": (("the food was really very good", "the food was not very good"),),
    "shakespeare": (("To be or not", "To be or now"),),
    "bert": (("the cat sold [MASK]", "the dog sold [MASK]"),),
}


@pytest.fixture(params=PAIRS)
def opened(request: pytest.FixtureRequest, published: Path) -> OpenModel:
    folder = published if request.param == "bert" else SHIPPED
    return open_checkpoint(folder / request.param, request.param)


def example_question(opened: OpenModel, metric: str = LOGIT_DIFFERENCE) -> Question:
    return question_of(opened, [TextPair(*texts) for texts in PAIRS[opened.name]], metric)


def test_each_pair_has_its_values_by_every_metric(opened: OpenModel) -> None:
    for metric in metrics_of(opened.config):
        (pair, *_) = example_question(opened, metric).pairs
        contrast = contrast_of(opened, pair)
        both, at = (contrast.clean, contrast.corrupted), contrast.read_at
        outputs = [trace(contrast.model, text, read_at=at).output for text in both]
        values = [float(contrast.metric_of(output)[0]) for output in outputs]
        assert values == pytest.approx([pair.clean_value, pair.corrupted_value], abs=1e-4)
    found = list(exact_writers(contrast))
    assert len(found) == pieces_of_writers(opened)
    columns = [column for columns, _ in found for column in columns]
    wiring = scores_of(opened, [attribute_writers(contrast)]).wiring
    assert sorted(columns) == list(range(len(wiring.columns)))


def test_scores_are_means_over_the_pairs_with_their_spread(opened: OpenModel) -> None:
    question = example_question(opened)
    for steps in METHODS.values():
        found = list(attributions(opened, question, steps))
        scores = scores_of(opened, found)
        assert len(found) == len(question.pairs)
        alone = [attribute_writers(contrast_of(opened, each), steps) for each in question.pairs]
        assert_close_to(scores.writers, torch.stack([each.writers for each in alone]).mean(0))
        assert scores.clean == pytest.approx([p.clean_value for p in question.pairs], abs=1e-4)
        assert (scores.writers_spread is None) == (len(found) == 1)
        assert (scores.edges is None) == bool(why_no_edges(opened)) == bool(scores.why_no_edges)
        if scores.edges is None:
            assert scores.strongest(3) == []
            continue
        edges = [attribute(contrast_of(opened, each), steps).edges for each in question.pairs]
        assert_close_to(scores.edges, torch.stack([e for e in edges if e is not None]).mean(0))
        reader, writer = scores.strongest(1)[0]
        assert float(scores.edges[reader, writer].abs()) == float(scores.edges.abs().max())
        edge = scores.edge(reader, writer, exact=1.5)
        assert (edge.source, edge.exact) == (node_of(scores.wiring.columns[writer]), 1.5)
        assert (edge.spread is None) == (len(found) == 1)


def test_exact_edges_come_pair_by_pair_as_parts_of_the_mean() -> None:
    opened = open_checkpoint(SHIPPED / "induction", "induction")
    question = example_question(opened)
    scores = scores_of(opened, list(attributions(opened, question, 5)))
    edges, found = scores.strongest(4), [0.0] * 4
    for at, part in mean_over_pairs(opened, question, edges):
        found[at] += part
    each = [dict(exact_edges(contrast_of(opened, pair), edges)) for pair in question.pairs]
    assert found == pytest.approx([sum(one[at] for one in each) / len(each) for at in range(4)])
    passes = nested_circuits(opened, question, scores).passes()
    corrupted = [pair.corrupted_value for pair in question.pairs]
    assert [base.metric for base in passes] == pytest.approx(corrupted, abs=1e-4)
    assert correlation([1, 2, 4], [1, 3, 2]) == pytest.approx(0.3273, abs=1e-4)
    for nothing in ([1.0, 1.0], [1.0], []):
        assert correlation(nothing, [*range(len(nothing))]) is None
