"""Which matrices two models differ in: LoRA's change has the rank of its adapter."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

from explorer.analysis import weight_change
from explorer.analysis.weight_change import rank_of, weight_changes
from models import Transformer, TransformerConfig
from models.lora import add_lora, lora_leaves, merge

CONFIG = TransformerConfig(vocab_size=20, d_model=16, n_layers=2, n_heads=2, d_ff=32, max_len=8)


def adapted(model: Transformer, rank: int) -> Transformer:
    """A copy with adapters whose product is not zero."""
    made = add_lora(deepcopy(model), rank, targets=("q_proj", "down_proj"))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for leaf in lora_leaves(made).values():
            leaf.lora_B.weight.normal_(generator=generator)
    return merge(made)


@pytest.mark.parametrize("rank", [1, 3])
def test_an_adapter_changes_its_matrices_by_its_rank_and_no_others(rank: int) -> None:
    model = Transformer(CONFIG, seed=0)
    other = adapted(model, rank)
    found = weight_changes(model, other)
    names = [each.name for each in found.matrices]
    assert len(names) == sum("q_proj" in name or "down_proj" in name for name in names) > 3
    assert found.compared > len(names)
    assert found.alone == 0
    mine, theirs = (dict(each.named_parameters()) for each in (model, other))
    for each in found.matrices:
        change = theirs[f"{each.name}.weight"] - mine[f"{each.name}.weight"]
        assert (each.rank, each.full_rank) == (rank, 16)
        expected = float(change.detach().norm() / mine[f"{each.name}.weight"].detach().norm())
        assert each.relative == pytest.approx(expected, rel=1e-5)


def test_the_same_model_differs_nowhere_and_other_shapes_are_counted() -> None:
    model = Transformer(CONFIG, seed=0)
    assert weight_changes(model, deepcopy(model)).matrices == ()
    wider = weight_changes(model, Transformer(CONFIG.replace(d_ff=64), seed=0))
    assert wider.alone == sum(each.dim() == 2 for each in model.parameters()) - wider.compared > 0


@pytest.mark.parametrize("shape", [(3, 9), (9, 3)])
def test_a_rank_is_that_of_the_singular_values(shape: tuple[int, int]) -> None:
    change = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    left, values, right = torch.linalg.svd(change, full_matrices=False)
    values[1:] = values[0] * torch.tensor([0.011, 0.009])
    assert rank_of(left @ values.diag() @ right) == 2


def test_where_it_is_too_much_no_rank_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_change, "MOST_OPERATIONS", 1)
    model = Transformer(CONFIG, seed=0)
    assert {each.rank for each in weight_changes(model, adapted(model, 1)).matrices} == {None}
