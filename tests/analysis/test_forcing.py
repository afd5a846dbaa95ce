"""Teacher forcing is one pass over the target; free running is what the model writes alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from explorer.analysis.forcing import forced
from models import Transformer, TransformerConfig
from models.generation import generate
from tests.grids import grid
from tests.models.building import shake

END = 1
KINDS = ("decoder", "encoder-decoder")
SOURCE = torch.tensor([[2, 3, 4]])


def model(kind: str) -> Transformer:
    config = TransformerConfig(
        kind=kind, n_layers=2, vocab_size=9, d_model=16, n_heads=2, d_ff=24, max_len=16,
        bos_id=0, eos_id=END,
    )  # fmt: skip
    return shake(Transformer(config, seed=1), by=0.6).eval()


@grid("kind, given", KINDS, [1, 3])
def test_both_ways_are_the_models_own(kind: str, given: int) -> None:
    made, target = model(kind), torch.tensor([0, 5, 6, 7, 3, 2, END])
    source = SOURCE if kind == "encoder-decoder" else None
    found = forced(made, source, target, given)
    steps = len(target) - given
    assert found.right == tuple(target[given:].tolist())
    assert found.fed == tuple(target[given - 1 : -1].tolist())
    inputs = [target[None, :-1]] if source is None else [source, target[None, :-1]]
    with torch.no_grad():
        logits = made(*inputs)[0, given - 1 :]
    assert found.said == tuple(logits.argmax(-1).tolist())
    own = logits.log_softmax(-1)[range(steps), target[given:]]
    torch.testing.assert_close(found.nats, -own, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.chances, own.exp(), rtol=1e-4, atol=1e-5)
    assert found.fed_free[1:] == found.free[:-1]
    if source is None:
        alone = generate(made, target[None, :given], max_length=steps, greedy=True)
        assert found.free == tuple(int(step.ids) for step in alone)
    elif given == 1:
        alone = generate(made, source, max_length=steps, greedy=True)
        assert found.free == tuple(int(step.ids) for step in alone)


def test_its_own_writing_never_departs_from_itself(subtests: pytest.Subtests) -> None:
    for kind in KINDS:
        with subtests.test(kind=kind):
            made = model(kind)
            source = SOURCE if kind == "encoder-decoder" else None
            prompt = torch.tensor([[0]]) if source is None else source
            alone = [int(step.ids) for step in generate(made, prompt, max_length=5, greedy=True)]
            found = forced(made, source, torch.tensor([0, *alone]), 1)
            assert found.departs is None
            assert found.said == found.right == found.free
            other = [*alone[:2], (alone[2] + 1) % 9 or 2, *alone[3:]] if len(alone) > 2 else [8]
            assert forced(made, source, torch.tensor([0, *other]), 1).departs is not None


@pytest.mark.parametrize("kind", KINDS)
def test_the_vocabulary_is_scored_only_where_something_is_asked(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, rows = model(kind), list[int]()
    read = made.read

    def watched(*inputs: Any) -> torch.Tensor:
        logits = read(*inputs)
        rows.append(logits.shape[1])
        return logits

    monkeypatch.setattr(made, "read", watched)
    target = torch.tensor([0, 5, 6, 7, 3, 2, END])
    forced(made, SOURCE if kind == "encoder-decoder" else None, target, 5)
    assert rows[0] == 2
    assert set(rows[1:]) == {1}


def test_something_must_be_left_to_write(subtests: pytest.Subtests) -> None:
    for given in [0, 3, 4]:
        with subtests.test(given=given), pytest.raises(ValueError, match="may be given"):
            forced(model("decoder"), None, torch.tensor([0, 5, 6]), given)
