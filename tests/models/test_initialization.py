"""Fresh weights follow from the seed, all of them, and from nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from models.config import TransformerConfig
from models.transformer import Transformer
from tests.models.grid import ODD_MODELS, ODDITIES


def differing(one: Transformer, other: Transformer) -> list[str]:
    pairs = zip(one.state_dict().items(), other.state_dict().values(), strict=True)
    return [name for (name, mine), theirs in pairs if not torch.equal(mine, theirs)]


@ODD_MODELS
def test_the_seed_decides(config: TransformerConfig) -> None:
    one = Transformer(config, seed=5)
    torch.rand(3)
    assert not differing(one, Transformer(config, seed=5))
    named = one.named_parameters(remove_duplicate=False)
    matrices = {name for name, parameter in named if parameter.dim() > 1}
    assert set(differing(one, Transformer(config, seed=6))) == matrices


@ODD_MODELS
def test_nothing_is_left_as_memory_held_it(
    config: TransformerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = torch.empty

    def poisoned(*args: object, **options: object) -> Tensor:
        return empty(*args, **options).fill_(torch.nan)  # type: ignore[call-overload]

    monkeypatch.setattr(torch, "empty", poisoned)
    model = Transformer(config)
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        assert value.isfinite().all(), name


def test_the_poison_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, **o: empty(*a, **o).fill_(torch.nan))
    monkeypatch.setattr("models.transformer.initialize", lambda *_: None)
    model = Transformer(ODDITIES["no head"])
    assert any(parameter.isnan().any() for parameter in model.parameters())


@ODD_MODELS
def test_the_global_random_state_is_left_alone(config: TransformerConfig) -> None:
    before = torch.get_rng_state()
    Transformer(config)
    assert torch.equal(before, torch.get_rng_state())


def test_sizes_of_fresh_weights() -> None:
    config = TransformerConfig(d_model=256, n_layers=8, n_heads=4, d_ff=512, vocab_size=300)
    spread = 0.8 / 256**0.5
    for name, parameter in Transformer(config).named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif parameter.dim() == 1:
            assert (parameter == 1).all(), name
        else:
            writes = name.endswith(("o_proj.weight", "down_proj.weight"))
            expected = spread / 4 if writes else spread  # √(2 · 8 layers) = 4
            assert parameter.std().item() == pytest.approx(expected, rel=0.05), name


def test_a_model_on_the_meta_device_needs_no_memory() -> None:
    with torch.device("meta"):
        model = Transformer(ODDITIES["encoder-decoder"])
    assert all(parameter.is_meta for parameter in model.parameters())
