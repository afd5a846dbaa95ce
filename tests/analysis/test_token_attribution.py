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
from explorer.inference.forward_pass import run_text
from models.interventions import Replace
from models.trace import trace
from tests.analysis.conftest import TEXT, inputs_of, opened_of
from tests.closeness import assert_close_to

NAMES = ("decoder", "after", "around", "both", "masked", "first", "class behind", "relative")
SMALL = 1e-6
STEPS = 512
"""Many, since a shaken model with ReLU bends at many points of the line."""


@pytest.fixture(params=NAMES, scope="module")
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ChosenAnswer, TokenAttribution]:
    opened = opened_of(tmp_path_factory.mktemp("models"), request.param)
    forward = run_text(opened, TEXT)
    is_class = opened.config.head == "classifier"
    place = 0 if is_class else max(0, len(forward.last_stack_tokens) - 2)
    answer = tokens.chosen_answer(opened, forward, place, 2)
    return answer, tokens.attribute_tokens(answer, STEPS)


def log_probability(answer: ChosenAnswer, embedding: Tensor) -> float:
    """That of the option in one whole pass with these embeddings, by the formula."""
    opened, forward = answer.opened, answer.forward
    edits, segments = [Replace(f"{answer.stack}.embed", embedding)], None
    if opened.config.n_segments:
        segments = torch.tensor([[token.segment for token in forward.tokens]])
    inputs = inputs_of(forward)
    output = trace(opened.model, *inputs, sites=(), edits=edits, segments=segments).output[0]
    logits = output[answer.position] if output.dim() == 2 else output
    odds = logits.exp()
    is_own = answer.forward.config.score_function == "sigmoid"
    return float((odds[answer.option] / (1 + odds[answer.option] if is_own else odds.sum())).log())


def slope(answer: ChosenAnswer, at: Tensor, direction: Tensor, place: int) -> float:
    """The derivative of ln p by one token in a direction (t, d), by central differences."""
    step = torch.zeros_like(at)
    step[place] = SMALL * direction[place]
    return (log_probability(answer, at + step) - log_probability(answer, at - step)) / (2 * SMALL)


def embedding_of(answer: ChosenAnswer) -> Tensor:
    """The embeddings that a pass records, (t, d)."""
    site = f"{answer.stack}.embed"
    return trace(answer.opened.model, *inputs_of(answer.forward), sites=site)[site][0]


def deleted(answer: ChosenAnswer, places: list[int]) -> Tensor:
    """The embeddings with the mean of all rows of the table at these places."""
    stack = getattr(answer.opened.model, answer.stack)
    changed = embedding_of(answer).clone()
    changed[places] = stack.embedding.weight.detach().mean(0) * stack.embedding_scale
    return changed


def test_gradients_are_central_differences(both: tuple[ChosenAnswer, TokenAttribution]) -> None:
    answer, whole = both
    embedding = embedding_of(answer)
    way = embedding - deleted(answer, [*answer.deletable])
    middle = tokens.integrated_gradients(answer, steps=1)
    for place in answer.deletable:
        expected = slope(answer, embedding, embedding, place)
        assert float(whole.values[tokens.GRADIENT][place]) == pytest.approx(expected, abs=1e-6)
        expected = slope(answer, embedding - way / 2, way, place)
        assert float(middle[place]) == pytest.approx(expected, abs=1e-6)
    stays = [place for place in range(len(way)) if place not in answer.deletable]
    assert not middle[stays].any()


def test_a_curve_is_that_of_separate_passes(both: tuple[ChosenAnswer, TokenAttribution]) -> None:
    answer, whole = both
    assert whole.counts == tuple(range(len(answer.deletable) + 1))
    for name, values in whole.values.items():
        order = sorted(answer.deletable, key=lambda place: -float(values[place]))
        logs = [log_probability(answer, deleted(answer, order[:n])) for n in whole.counts]
        expected = torch.tensor(logs, dtype=torch.float64).exp()
        assert_close_to(whole.curves[name], expected)
        between = [float(one + other) / 2 for one, other in pairwise(expected)]
        assert whole.areas[name] == pytest.approx(sum(between) / len(between))
        assert_close_to(whole.random[0, [0, -1]], expected[[0, -1]])
    assert torch.equal(tokens.deletion_curves(answer, {}).random, whole.random), "a fixed seed"
    assert len({tuple(row) for row in whole.random.tolist()}) > 1
    change, total = logs[0] - logs[-1], float(whole.values[tokens.INTEGRATED].sum())
    assert whole.change == pytest.approx(change)
    assert whole.error == pytest.approx(abs(total - change) / abs(change))
    assert whole.error < 0.05


def test_attention_rollout_and_importance(both: tuple[ChosenAnswer, TokenAttribution]) -> None:
    answer, whole = both
    forward, config, place = answer.forward, answer.forward.config, answer.position
    layers = forward.all_weights(forward.parts[0].name).mean(1)
    rolled = torch.eye(layers.shape[-1], dtype=layers.dtype)
    for layer in layers:
        mixed = (layer + torch.eye(len(layer))) / 2
        rolled = (mixed / mixed.sum(-1, keepdim=True)) @ rolled
    rows = [place]
    if config.head == "classifier":
        rows = {"first": [0], "last": [len(rolled) - 1]}.get(config.pooling, [*range(len(rolled))])
    if config.kind == "encoder-decoder":
        row = forward.all_weights("decoder.cross_attn").mean(1)[-1, place]
        expected = row, row @ rolled
    else:
        expected = layers[-1][rows].mean(0), rolled[rows].mean(0)
    assert_close_to(whole.values[tokens.ATTENTION], expected[0])
    assert_close_to(whole.values[tokens.ROLLOUT], expected[1])
    flow = information_flow(forward)
    by_route = route(flow, flow.starts[place]).streams[answer.stack][0]
    assert torch.equal(whole.values[tokens.IMPORTANCE], by_route)


def test_what_cannot_be_attributed_is_refused_and_what_stays_is_not_deleted(tmp_path: Path) -> None:
    opened = opened_of(tmp_path, "decoder")
    forward = run_text(opened, TEXT)
    answer = tokens.chosen_answer(opened, forward, 4, 2)
    assert forward.tokens[0].special
    assert answer.deletable == (1, 2, 3, 4), "no special token, and none that is not seen"
    with pytest.raises(tokens.AttributionError, match="at least two tokens"):
        tokens.chosen_answer(opened, forward, 1, 2)
    for changes, why in (
        ({"head": "none"}, "gives no probabilities"),
        ({"head": "classifier", "n_classes": 1, "problem_type": "regression"}, "no deletion curve"),
    ):
        other: Any = SimpleNamespace(config=opened.config.replace(kind="encoder", **changes))
        with pytest.raises(tokens.AttributionError, match=why):
            tokens.chosen_answer(other, forward, 3, 0)
