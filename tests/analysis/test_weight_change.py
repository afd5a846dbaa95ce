"""Which matrices two models differ in: LoRA's change has the rank of its adapter."""

from copy import deepcopy

import pytest
import torch

from explorer.analysis.weight_change import Unpaired, rank_of, rank_of_change, weight_changes
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
    assert found.unpaired == ()
    mine, theirs = (dict(each.named_parameters()) for each in (model, other))
    for each in found.matrices:
        change = theirs[f"{each.name}.weight"] - mine[f"{each.name}.weight"]
        assert rank_of_change(model, other, each.name) == rank
        assert each.shape == tuple(change.shape)
        expected = float(change.detach().norm() / mine[f"{each.name}.weight"].detach().norm())
        assert each.relative == pytest.approx(expected, rel=1e-5)


def test_a_matrix_without_a_partner_of_its_shape_is_named_with_both_shapes() -> None:
    model = Transformer(CONFIG, seed=0)
    assert weight_changes(model, deepcopy(model)).matrices == ()
    other = Transformer(CONFIG.replace(d_ff=64, n_layers=1), seed=0)
    found = weight_changes(model, other)
    assert Unpaired("decoder.blocks.0.mlp.up_proj", (32, 16), (64, 16)) in found.unpaired
    assert Unpaired("decoder.blocks.1.mlp.up_proj", (32, 16), None) in found.unpaired
    back = weight_changes(other, model)
    assert Unpaired("decoder.blocks.1.mlp.up_proj", None, (32, 16)) in back.unpaired
    assert back.compared == found.compared
    assert len(found.unpaired) + found.compared == sum(
        each.dim() == 2 for each in model.parameters()
    )


@pytest.mark.parametrize("shape", [(3, 9), (9, 3)])
def test_a_rank_is_that_of_the_singular_values(shape: tuple[int, int]) -> None:
    change = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    left, values, right = torch.linalg.svd(change, full_matrices=False)
    values[1:] = values[0] * torch.tensor([0.011, 0.009])
    assert rank_of(left @ values.diag() @ right) == 2


def test_weights_that_are_not_finite_have_no_rank() -> None:
    assert rank_of(torch.tensor([[1.0, torch.inf], [0.0, 1.0]]).double()) == 0
