"""LoRA: at first the parent itself, then trained alone; merged it is a plain model again."""

import pytest
import torch

from models.config import TransformerConfig
from models.lora import add_lora, lora_fault, lora_leaves, merged, target_ranks
from models.model import Transformer
from models.trace import CHEAP_SITES, trace
from tests.closeness import assert_close_to
from tests.models.grid import ODDITIES
from tests.tiny import assert_equal_weights, config_of, inputs_of, shake, shaken, weights

EVERY = ("q_proj", "k_proj", "v_proj", "o_proj")


def adapted(config: TransformerConfig, rank: int = 2) -> Transformer:
    """A model in which every adapter does something."""
    return shake(add_lora(shaken(config), rank, 5.0, EVERY)).eval()


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("name", ODDITIES)
def test_at_first_it_is_the_parent_exactly(name: str) -> None:
    config = ODDITIES[name]
    parent, inputs = shaken(config), inputs_of(config)
    before = parent(*inputs)
    assert torch.equal(add_lora(parent, 2, targets=tuple(target_ranks(config)))(*inputs), before)


@pytest.mark.parametrize("name", ODDITIES)
def test_watched_fused_derived_and_merged_are_one(name: str) -> None:
    config = ODDITIES[name]
    model, inputs = adapted(config), inputs_of(config)
    fused, watched = trace(model, *inputs, sites=CHEAP_SITES), trace(model, *inputs)
    assert_close_to(fused.output, watched.output)
    assert_close_to(merged(model)(*inputs), fused.output)
    for site in watched.sites:
        if site.endswith(".weights"):
            assert_close_to(fused.weights(site.removesuffix(".weights")), watched[site])


def test_merging_leaves_the_adapted_model_as_it_is() -> None:
    model = adapted(config_of())
    before, plain = weights(model), merged(model)
    assert lora_leaves(plain) == {}
    names = [name for name, _ in Transformer(config_of()).named_parameters()]
    assert [name for name, _ in plain.named_parameters()] == names
    assert all(torch.equal(each, before[name]) for name, each in weights(model).items())
    assert all(each.requires_grad for each in plain.parameters())


def test_the_same_seed_gives_the_same_adapters() -> None:
    first, second, other = (add_lora(Transformer(config_of()), 2, seed=seed) for seed in (3, 3, 4))
    assert_equal_weights(weights(first), weights(second))
    a = "decoder.blocks.1.self_attn.q_proj.lora_A.weight"
    assert not torch.equal(weights(first)[a], weights(other)[a])


def test_what_cannot_be_is_said_in_one_sentence() -> None:
    config = config_of(n_kv_heads=1)  # whose k_proj has 4 rows
    assert lora_fault(config, 4, ("q_proj", "k_proj")) is None
    assert "between 1 and 4" in str(lora_fault(config, 5, ("q_proj", "k_proj")))
    assert "between 1 and 12" in str(lora_fault(config, 0, ("q_proj",)))
    assert "no gate_proj" in str(lora_fault(config, 1, ("gate_proj",)))
    assert "at least one" in str(lora_fault(config, 1, ()))
    with pytest.raises(ValueError, match="no embedding"):
        add_lora(Transformer(config), 1, targets=("embedding",))
