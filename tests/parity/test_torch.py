"""Attention and the whole model are torch.nn's own, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from models.attention import MultiHeadAttention
from models.block import Block, Residual
from models.masking import causal_mask, padding_mask
from models.tap import Tap
from models.transformer import Stack, Transformer
from tests.grids import grid
from tests.models.building import config_of, keep_of_lengths, shake, shaken
from tests.parity.reference import (
    TOLERANCE,
    TransformerReference,
    assert_same,
    attention_reference,
    compare_attention,
    compare_transformers,
)

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

MASKS = {
    "no mask": None,
    "causal": causal_mask(5),
    "padding left": padding_mask(keep_of_lengths([5, 2, 4], 5, "left")),
    "causal and padding": causal_mask(5) & padding_mask(keep_of_lengths([5, 2, 4], 5)),
}


def attention() -> MultiHeadAttention:
    return shake(MultiHeadAttention(12, 3).double())


def stream(length: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, length, 12, generator=generator).double().requires_grad_()


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_self_attention(mask: Tensor | None) -> None:
    ours, x = attention(), stream(5, seed=1)
    theirs, y = attention_reference(ours), x.detach().clone().requires_grad_()
    forbidden = None if mask is None else ~mask.expand(3, 3, 5, 5).flatten(0, 1)
    compare_attention(ours(x, mask=mask), theirs(y, y, y, attn_mask=forbidden)[0], ours, theirs)
    assert x.grad is not None
    assert y.grad is not None
    assert_same(x.grad, y.grad, "the gradient of x")


def test_cross_attention() -> None:
    ours, x, memory = attention(), stream(5, seed=1), stream(7, seed=2)
    theirs, keep = attention_reference(ours), keep_of_lengths([7, 1, 4], 7)
    answer, _ = theirs(x, memory, memory, key_padding_mask=~keep)
    compare_attention(ours(x, memory, padding_mask(keep)), answer, ours, theirs)


def test_weights_of_every_head() -> None:
    class Weights(Tap):
        def wants(self, name: str) -> bool:
            return name == "weights"

        def __call__(self, name: str, value: Tensor) -> Tensor:
            if name == "weights":
                seen.append(value)
            return value

    seen: list[Tensor] = []
    ours, x = attention(), stream(5, seed=1)
    ours(x, mask=causal_mask(5), tap=Weights())
    forbidden = ~causal_mask(5)[0, 0]
    theirs = attention_reference(ours)(x, x, x, attn_mask=forbidden, average_attn_weights=False)
    assert_same(seen[0], theirs[1], "the weights")


def pair(
    dtype: torch.dtype = torch.float64, **changes: object
) -> tuple[Transformer, TransformerReference]:
    """Post-norm and gelu, with an epsilon large enough to matter."""
    chosen = {"norm_position": "post", "activation": "gelu", "norm_eps": 1e-3} | changes
    ours = shaken(config_of("encoder-decoder", **chosen), dtype)
    return ours, TransformerReference(ours)


@grid("dtype, activation, norm_position", TOLERANCE, ["relu", "gelu"], ["pre", "post"])
def test_transformer(norm_position: str, activation: str, dtype: torch.dtype) -> None:
    compare_transformers(*pair(dtype, norm_position=norm_position, activation=activation))


def stacks(model: Transformer) -> tuple[Stack, Stack]:
    assert model.encoder is not None
    assert model.decoder is not None
    return model.encoder, model.decoder


def last(model: Transformer) -> Block:
    block = model.last_stack.blocks[-1]
    assert isinstance(block, Block)
    return block


def swap_norms(model: Transformer) -> None:
    first, second = last(model).self_residual, last(model).mlp_residual
    first.norm, second.norm = second.norm, first.norm


def swap_attentions(model: Transformer) -> None:
    block = last(model)
    block.self_attn, block.cross_attn = block.cross_attn, block.self_attn


def lose_bias(model: Transformer, module: str) -> None:
    last(model).get_submodule(module).register_parameter("bias", None)


def take_the_tanh_gelu(model: Transformer) -> None:
    last(model).mlp.activation = partial(F.gelu, approximate="tanh")


def take_another_epsilon(model: Transformer) -> None:
    last(model).mlp_residual.norm.eps = 1e-5


def norm_before(model: Transformer) -> None:
    for module in model.modules():
        if isinstance(module, Residual):
            module.where = "pre"


def skip_the_residual(model: Transformer) -> None:
    residual: Any = last(model).mlp_residual
    residual.forward = lambda x, layer, reads: residual.norm(layer(x))


def leave_embeddings_unscaled(model: Transformer) -> None:
    model.last_stack.embedding_scale = 1.0


def shift_positions(model: Transformer) -> None:
    positions: Any = model.last_stack.positions
    embed = positions.embed
    positions.embed = lambda where: embed(where + 1)


def see_the_future(model: Transformer) -> None:
    model.last_stack.causal = False


def see_padding_of(model: Transformer, stack: int) -> None:
    its: Any = stacks(model)[stack]
    masks = its.self_masks
    its.self_masks = lambda queries, past, keep: masks(queries, past, None)


def see_padding_of_the_memory(model: Any) -> None:
    decode = model.decode
    model.decode = lambda target, memory, memory_keep, keep, **how: decode(
        target, memory, None, keep, **how
    )


def turn_heads_around(model: Transformer) -> None:
    """Queries of one head meet the keys of another."""
    attention = last(model).self_attn
    attention.q_proj.weight.data = attention.q_proj.weight.data.roll(attention.d_head, dims=0)


def scale_by_the_model(model: Transformer) -> None:
    """√d_model in place of √d_head."""
    attention = last(model).cross_attn
    attention.q_proj.weight.data /= attention.n_heads**0.5


def split_heads_across(model: Transformer) -> None:
    """Every n-th number in place of d_head neighbours."""
    for module in model.modules():
        attention: Any = module
        if isinstance(module, MultiHeadAttention):
            attention.split = lambda x: x.unflatten(-1, (4, 3)).permute(0, 3, 1, 2)


MISTAKES: list[Callable[[Transformer], None]] = [
    swap_norms,
    swap_attentions,
    take_the_tanh_gelu,
    take_another_epsilon,
    norm_before,
    skip_the_residual,
    leave_embeddings_unscaled,
    shift_positions,
    see_the_future,
    partial(see_padding_of, stack=0),
    partial(see_padding_of, stack=1),
    see_padding_of_the_memory,
    turn_heads_around,
    scale_by_the_model,
    split_heads_across,
    partial(lose_bias, module="self_attn.v_proj"),
    partial(lose_bias, module="cross_attn.o_proj"),
    partial(lose_bias, module="mlp.down_proj"),
]


def test_every_planted_mistake_is_seen(subtests: pytest.Subtests) -> None:
    for make in MISTAKES:
        with subtests.test(make=make):
            ours, theirs = pair()
            with torch.no_grad():
                make(ours)
            with pytest.raises(AssertionError, match="the logits differs by"):
                compare_transformers(ours, theirs)
