"""Fresh weights follow from the seed, all of them, and from nothing else."""

import pytest
import torch
from torch import Tensor

from models.config import TransformerConfig
from models.model import Transformer
from tests.models.grid import ODDITIES

EMPTY = torch.empty


def differing(one: Transformer, other: Transformer) -> set[str]:
    pairs = zip(one.state_dict().items(), other.state_dict().values(), strict=True)
    return {name for (name, mine), theirs in pairs if not torch.equal(mine, theirs)}


def poisoned(*args: object, **options: object) -> Tensor:
    """Memory as it might have been held by anyone before."""
    return EMPTY(*args, **options).fill_(torch.nan)  # type: ignore[call-overload]


@pytest.mark.usefixtures("shapes_unchecked")
def test_the_seed_decides_and_the_random_state_is_left_alone() -> None:
    for name, config in ODDITIES.items():
        before = torch.get_rng_state()
        one = Transformer(config, seed=5)
        assert torch.equal(before, torch.get_rng_state()), name
        torch.rand(3)
        assert not differing(one, Transformer(config, seed=5)), name
        named = one.named_parameters(remove_duplicate=False)
        matrices = {each for each, parameter in named if parameter.dim() > 1}
        assert differing(one, Transformer(config, seed=6)) == matrices, name


def test_nothing_is_left_as_memory_held_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "empty", poisoned)
    for config in ODDITIES.values():
        model = Transformer(config)
        for name, value in [*model.named_parameters(), *model.named_buffers()]:
            assert value.isfinite().all(), name
    monkeypatch.setattr("models.model.initialize", lambda *_: None)
    model = Transformer(ODDITIES["no head"])
    assert any(one.isnan().any() for one in model.parameters()), "the poison would be seen"


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
