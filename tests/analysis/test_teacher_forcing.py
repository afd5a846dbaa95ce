"""Teacher forcing is one pass over the target; free running is what the model writes alone."""

from itertools import product

import pytest
import torch

from explorer.analysis.teacher_forcing import teacher_forcing
from models import Transformer, TransformerConfig
from models.config import GenerationConfig
from models.generation import generate
from tests.models.building import shake

END = 1
SOURCES = {"decoder": None, "encoder-decoder": torch.tensor([[2, 3, 4]])}
TARGET = torch.tensor([0, 5, 6, 7, 3, 2, END])


def model(kind: str) -> Transformer:
    config = TransformerConfig(
        kind=kind, n_layers=2, vocab_size=9, d_model=16, n_heads=2, d_ff=24, max_len=16,
        bos_id=0, generation=GenerationConfig(eos_ids=(END,)),
    )  # fmt: skip
    return shake(Transformer(config, seed=1), by=0.6).eval()


def test_both_ways_are_the_models_own() -> None:
    for (kind, source), given in product(SOURCES.items(), (1, 3)):
        made, steps = model(kind), len(TARGET) - given
        found = teacher_forcing(made, source, TARGET, given)
        assert found.targets == tuple(TARGET[given:].tolist())
        assert found.inputs == tuple(TARGET[given - 1 : -1].tolist())
        inputs = [each for each in (source, TARGET[None, :-1]) if each is not None]
        with torch.no_grad():
            logits = made(*inputs)[0, given - 1 :]
        assert found.predicted == tuple(logits.argmax(-1).tolist()), kind
        own = logits.log_softmax(-1)[range(steps), TARGET[given:]]
        torch.testing.assert_close(found.nats, -own, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found.probabilities, own.exp(), rtol=1e-4, atol=1e-5)
        assert found.free_inputs[1:] == found.generated[:-1], kind
        if source is None or given == 1:
            prompt = TARGET[None, :given] if source is None else source
            alone = generate(made, prompt, max_length=steps, greedy=True)
            assert found.generated == tuple(int(step.ids) for step in alone), kind


def test_its_own_writing_never_departs_from_itself() -> None:
    for kind, source in SOURCES.items():
        made = model(kind)
        prompt = torch.tensor([[0]]) if source is None else source
        alone = [int(step.ids) for step in generate(made, prompt, max_length=5, greedy=True)]
        found = teacher_forcing(made, source, torch.tensor([0, *alone]), 1)
        assert found.diverges_at is None, kind
        assert found.predicted == found.targets == found.generated, kind
        other = 2 if alone[-1] != 2 else 3
        diverges_at = teacher_forcing(
            made, source, torch.tensor([0, *alone[:-1], other]), 1
        ).diverges_at
        assert diverges_at == len(alone) - 1, kind


def test_something_must_be_left_to_write() -> None:
    for given in (0, 3, 4):
        with pytest.raises(ValueError, match=f"may be given, not {given}"):
            teacher_forcing(model("decoder"), None, TARGET[:3], given)
