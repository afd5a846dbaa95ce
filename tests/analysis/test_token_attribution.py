"""Tokens behind an answer: against central differences and against separate edited passes."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.analysis import token_attribution as tokens
from explorer.analysis.information_flow import information_flow, route
from explorer.analysis.token_attribution import ChosenAnswer, TokenAttribution
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import run_batch_uncached
from models.interventions import Replace, ReplaceAt
from models.trace import trace
from tests.analysis.conftest import TEXT, opened_of
from tests.closeness import assert_close_to

NAMES = ("decoder", "after", "around", "both", "masked", "first", "class behind", "relative")
SMALL = 1e-6
STEPS = 2048
"""Many, since a shaken model with ReLU bends at many points of the line."""


def answer_of(folder: Path, name: str, text: str = TEXT) -> tuple[OpenModel, ChosenAnswer]:
    opened = opened_of(folder, name)
    (forward,) = run_batch_uncached(opened, (text,))
    length = len(forward.last_stack_tokens)
    place = 0 if opened.config.head == "classifier" else max(0, length - 2)
    return opened, tokens.chosen_answer(opened, forward, place, 2)


@pytest.fixture(params=NAMES)
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[OpenModel, ChosenAnswer]:
    return answer_of(tmp_path, request.param)


@pytest.fixture
def answer(both: tuple[OpenModel, ChosenAnswer]) -> ChosenAnswer:
    return both[1]


@pytest.fixture
def whole(both: tuple[OpenModel, ChosenAnswer]) -> TokenAttribution:
    return tokens.attribute_tokens(*both, STEPS)


def probability(answer: ChosenAnswer, *edits: ReplaceAt | Replace) -> Tensor:
    """That of the option in one whole pass, by the formula."""
    how = answer.segments_of(1)
    output = trace(answer.base.model, *answer.base.inputs, sites=(), edits=edits, **how).output[0]
    logits = output[answer.base.position] if output.dim() == 2 else output
    if answer.forward.config.score_function == "sigmoid":
        return 1 / (1 + (-logits[answer.option]).exp())
    return logits.exp()[answer.option] / logits.exp().sum()


def slope(answer: ChosenAnswer, at: Tensor, direction: Tensor) -> float:
    """The derivative of ln p at these embeddings in a direction, by central differences."""
    site = f"{answer.stack}.embed"
    above, below = (
        probability(answer, Replace(site, at + sign * SMALL * direction)).log() for sign in (1, -1)
    )
    return float(above - below) / (2 * SMALL)


def of_one_token(whole: Tensor, place: int) -> Tensor:
    alone = torch.zeros_like(whole)
    alone[place] = whole[place]
    return alone


def test_gradients_are_those_of_central_differences(
    answer: ChosenAnswer, whole: TokenAttribution
) -> None:
    embedding, baseline = answer.embedding, answer.baseline
    middle = tokens.integrated_gradients(answer, steps=1)
    for place in (*answer.deletable[:2], answer.deletable[-1]):
        expected = slope(answer, embedding, of_one_token(embedding, place))
        assert float(whole.values[tokens.GRADIENT][place]) == pytest.approx(expected, abs=1e-6)
        way = of_one_token(embedding - baseline, place)
        expected = slope(answer, (embedding + baseline) / 2, way)
        assert float(middle[place]) == pytest.approx(expected, abs=1e-6)


def test_integrated_gradients_are_complete(answer: ChosenAnswer, whole: TokenAttribution) -> None:
    deleted = probability(answer, *deletions(answer, answer.deletable))
    change = float(probability(answer).log() - deleted.log())
    assert whole.curves.change == pytest.approx(change)
    assert float(whole.values[tokens.INTEGRATED].sum()) == pytest.approx(change, rel=0.02)
    assert whole.error < 0.02
    few = tokens.integrated_gradients(answer, steps=2)
    less = tokens.TokenAttribution({tokens.INTEGRATED: few}, whole.curves)
    assert less.error == pytest.approx(abs(float(few.sum()) - change) / abs(change))


def deletions(answer: ChosenAnswer, places: tuple[int, ...]) -> list[ReplaceAt]:
    """The mean of all rows of the table, one place after another."""
    stack = getattr(answer.base.model, answer.stack)
    mean = stack.embedding.weight.detach().mean(0) * stack.embedding_scale
    return [ReplaceAt(f"{answer.stack}.embed", place, mean) for place in places]


def test_a_curve_is_that_of_separate_passes(answer: ChosenAnswer, whole: TokenAttribution) -> None:
    curves = whole.curves
    assert curves.counts == tuple(range(len(answer.deletable) + 1))
    for name, values in whole.values.items():
        order = sorted(answer.deletable, key=lambda place: -float(values[place]))
        expected = [
            float(probability(answer, *deletions(answer, tuple(order[:count]))))
            for count in curves.counts
        ]
        assert curves.curves[name].tolist() == pytest.approx(expected)
        between = [(one + other) / 2 for one, other in pairwise(expected)]
        assert curves.areas[name] == pytest.approx(sum(between) / len(between))
    ends = curves.random[:, [0, -1]]
    assert_close_to(ends, curves.curves[tokens.IMPORTANCE][[0, -1]].expand_as(ends))
    again = tokens.deletion_curves(answer, whole.values).random
    assert torch.equal(again, curves.random), "the seed is fixed"
    assert len({tuple(row) for row in curves.random.tolist()}) > 1


def test_attention_rollout_and_importance_are_those_of_the_position(
    answer: ChosenAnswer, whole: TokenAttribution
) -> None:
    forward, config = answer.forward, answer.forward.config
    layers = forward.all_weights(forward.parts[0].name).mean(1)
    rolled = torch.eye(layers.shape[-1], dtype=layers.dtype)
    for layer in layers:
        both = (layer + torch.eye(len(layer))) / 2
        rolled = (both / both.sum(-1, keepdim=True)) @ rolled
    if config.kind == "encoder-decoder":
        row = forward.all_weights("decoder.cross_attn").mean(1)[-1, answer.base.position]
        expected = row, row @ rolled
    elif config.head == "classifier":
        place = {"first": 0, "last": len(rolled) - 1}.get(config.pooling)
        rows = slice(None) if place is None else slice(place, place + 1)
        expected = layers[-1][rows].mean(0), rolled[rows].mean(0)
    else:
        expected = layers[-1][answer.base.position], rolled[answer.base.position]
    assert_close_to(whole.values[tokens.ATTENTION], expected[0])
    assert_close_to(whole.values[tokens.ROLLOUT], expected[1])
    flow = information_flow(forward)
    at = 0 if config.head == "classifier" else answer.base.position
    mapped = route(flow, flow.starts[at]).streams[answer.stack][0]
    assert torch.equal(whole.values[tokens.IMPORTANCE], mapped)
    assert 0 <= float(mapped.sum()) <= 1 + 1e-9


def test_what_stays_is_not_deleted(tmp_path: Path) -> None:
    _, answer = answer_of(tmp_path, "decoder")
    specials = [at for at, token in enumerate(answer.forward.tokens) if token.special]
    assert specials
    assert not set(specials) & set(answer.deletable)
    assert max(answer.deletable) <= answer.base.position, "a later token is not seen"
    assert tokens.keeps_first(answer.forward) is (0 not in specials)
    unseen = tokens.integrated_gradients(answer, 2)
    rest = [at for at in range(len(unseen)) if at not in answer.deletable]
    assert not unseen[rest].any()


def test_what_cannot_be_attributed_is_refused(tmp_path: Path) -> None:
    opened, answer = answer_of(tmp_path, "decoder")
    with pytest.raises(tokens.AttributionError, match="at least two tokens"):
        tokens.chosen_answer(opened, answer.forward, 0, 2)
    for changes, why in (
        ({"head": "none"}, "no output head"),
        ({"head": "classifier", "n_classes": 1, "problem_type": "regression"}, "no deletion curve"),
    ):
        other: Any = SimpleNamespace(config=opened.config.replace(kind="encoder", **changes))
        with pytest.raises(tokens.AttributionError, match=why):
            tokens.chosen_answer(other, answer.forward, 3, 0)
