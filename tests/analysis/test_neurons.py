"""Neurons of a feed-forward layer: against sums and single lines."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.analysis.circuits.top_lines import largest_lines, neuron_activations, tokenize_lines
from explorer.analysis.logit_attribution import (
    contributions,
    direct_logits,
    neuron_strengths,
    promoted_logits,
)
from explorer.inference.forward_pass import ForwardPass, run_text
from models.trace import trace
from tests.analysis.conftest import TEXT, inputs_of, opened_of
from tests.closeness import assert_close_to

LAYER, PLACE, OPTION, NEURON = 0, 1, 4, 5
LINES = ("the black cat sleeps", "le chat", "a dog eats le chat noir")


def hidden_of(forward: ForwardPass, stack: str) -> Tensor:
    site = f"{stack}.{LAYER}.mlp.hidden"
    return trace(forward.trace.model, *inputs_of(forward), sites=(site,))[site][0]


@pytest.mark.parametrize("name", ["decoder", "gated", "after", "around", "beside", "both"])
def test_direct_logits_of_all_neurons_are_those_of_the_layer(tmp_path: Path, name: str) -> None:
    opened = opened_of(tmp_path, name)
    forward = run_text(opened, TEXT)
    stack = opened.config.stacks[-1]
    activations = hidden_of(forward, stack)[PLACE]
    everything = torch.arange(len(activations))
    logits = promoted_logits(forward, LAYER, PLACE, everything, activations)[:, OPTION].sum()
    down: Any = getattr(opened.model, stack).blocks[LAYER].mlp.down_proj
    if down.bias is not None:
        bias = down.bias.detach()[None]
        logits = logits + direct_logits(forward, LAYER, PLACE, bias, by_mlp=True)[0, OPTION]
    assert_close_to(logits, contributions(forward, PLACE, OPTION).feed_forward[LAYER])
    if name == "decoder":
        norms = torch.stack([down.weight[:, n].norm() for n in everything])
        strengths = neuron_strengths(opened.model, stack, LAYER, activations)
        assert_close_to(strengths, activations.abs() * norms)


def test_lines_are_those_with_the_largest_activation(tmp_path: Path) -> None:
    opened = opened_of(tmp_path, "gated")
    text, shares = tokenize_lines(opened, LINES), list[float]()
    measured = neuron_activations(opened, text.rows, LAYER, shares.append)
    expected = []
    for line in LINES:
        alone = hidden_of(run_text(opened, line), "decoder")[1:, NEURON]  # the first does not count
        place = int((-alone).argmax())
        expected.append((float(alone[place]), place + 1))
    values, places = (of[1, :, NEURON] for of in measured)
    best = largest_lines(values, places, 3)
    negative = [line for line in range(3) if expected[line][0] < 0]
    assert [top.line for top in best] == sorted(negative, key=lambda line: expected[line][0])
    assert negative
    for top in best:
        value, place = expected[top.line]
        assert top.value == pytest.approx(-value)
        assert top.token == place
    assert shares[-1] == 1
    nothing = torch.zeros(3)
    assert not largest_lines(nothing, nothing, 3), "a neuron that never fires has no lines"
