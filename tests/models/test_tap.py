"""Watching leaves no trace on the model, so one model serves many threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from torch import Tensor

from models.interventions import Scale, SetMask, WithoutKey
from models.masking import causal_mask
from models.tap import NO_TAP
from models.trace import CHEAP_SITES, trace
from models.transformer import Transformer
from tests.models.building import config_of, ids_of, inputs_of, shaken
from tests.models.grid import KINDS_AND_POSITIONS

TRIANGLE = tuple(tuple(row) for row in causal_mask(6)[0, 0].tolist())


def test_the_tap_that_watches_nothing() -> None:
    value = torch.zeros(2)
    assert NO_TAP("weights", value) is value
    assert NO_TAP.at("decoder") is NO_TAP
    assert not NO_TAP.wants("weights")


def state_of(model: Transformer) -> dict[str, object]:
    """Everything that hangs on the modules: attributes by identity, numbers by value."""
    held: dict[str, object] = {}
    for path, module in model.named_modules():
        held |= {f"{path}.{name}": id(value) for name, value in vars(module).items()}
        for store in ("_parameters", "_buffers", "_modules", "_forward_hooks"):
            held[f"{path}.{store}"] = [(key, id(v)) for key, v in getattr(module, store).items()]
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        held[name] = value.detach().numpy().tobytes()
    return held


@KINDS_AND_POSITIONS
def test_nothing_of_a_pass_stays_on_the_model(kind: str, positions: str) -> None:
    config = config_of(kind, positions=positions, bos_id=1, eos_id=2)
    model, inputs = shaken(config), inputs_of(config)
    before = state_of(model)
    model(*inputs)
    trace(model, *inputs)
    trace(model, *inputs, edits=[Scale("*.self_attn.head_out", head=1)])
    if kind != "encoder":
        model.generate(inputs[0], max_length=4)
    assert state_of(model) == before


def jobs(model: Transformer) -> list[Callable[[], Tensor]]:
    """Passes of many kinds, each with its own input."""

    def watched(number: int, *edits: Scale | WithoutKey | SetMask) -> Tensor:
        seen = trace(model, ids_of(2, 6, seed=number), edits=edits)
        return torch.cat([seen.output.flatten(), seen.weights("decoder.1.self_attn").flatten()])

    def derived(number: int) -> Tensor:
        seen = trace(model, ids_of(2, 6, seed=number), sites=CHEAP_SITES)
        return seen.weights("decoder.1.self_attn", head=number % 3)

    def unwatched(number: int) -> Tensor:
        return model(ids_of(2, 6, seed=number)).detach()

    def written(number: int) -> Tensor:
        return model.generate(ids_of(2, 3, seed=number), max_length=5, seed=number)

    work: list[Callable[[], Tensor]] = []
    for number in range(6):
        edits = (
            Scale("decoder.0.self_attn.head_out", head=number % 3),
            WithoutKey("decoder.*.self_attn.weights", number % 6),
            SetMask("decoder.0.self_attn.mask", TRIANGLE),
        )
        work += [partial(watched, number, edits[number % 3]), partial(watched, number)]
        work += [partial(each, number) for each in (derived, unwatched, written)]
    return work


@pytest.mark.parametrize("positions", ["sinusoidal", "alibi"])
def test_eight_threads_give_what_one_gives(positions: str) -> None:
    work = jobs(shaken(config_of("decoder", positions=positions), torch.float32))
    alone = [job() for job in work]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda job: job(), work * 2))
    for expected, result in zip(alone * 2, together, strict=True):
        assert torch.equal(expected, result)
