"""The whole model is torch.nn.Transformer, and the comparison sees every planted mistake."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from models.attention import MultiHeadAttention
from models.block import Block, Residual
from models.transformer import Stack, Transformer
from tests.grids import grid
from tests.parity.reference import TOLERANCE
from tests.parity.whole import compare, pair

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


@grid("dtype, activation, norm_position", TOLERANCE, ["relu", "gelu"], ["pre", "post"])
def test_transformer(norm_position: str, activation: str, dtype: torch.dtype) -> None:
    compare(*pair(dtype, norm_position=norm_position, activation=activation))


def stacks(model: Transformer) -> tuple[Stack, Stack]:
    assert model.encoder is not None
    assert model.decoder is not None
    return model.encoder, model.decoder


def last(stack: Stack) -> Block:
    block = stack.blocks[-1]
    assert isinstance(block, Block)
    return block


def swap_norms(model: Transformer) -> None:
    block = last(model.last_stack)
    first, second = block.self_residual, block.mlp_residual
    first.norm, second.norm = second.norm, first.norm


def swap_attentions(model: Transformer) -> None:
    block = last(model.last_stack)
    block.self_attn, block.cross_attn = block.cross_attn, block.self_attn


def swap_embeddings(model: Transformer) -> None:
    encoder, decoder = stacks(model)
    encoder.embedding.weight.data[:13] = decoder.embedding.weight.data


def lose_bias(model: Transformer, module: str) -> None:
    linear = last(model.last_stack).get_submodule(module)
    linear.register_parameter("bias", None)


def lose_the_bias_of_the_head(model: Transformer) -> None:
    assert model.head is not None
    model.head.register_parameter("bias", None)


def take_the_tanh_gelu(model: Transformer) -> None:
    last(model.last_stack).mlp.activation = partial(F.gelu, approximate="tanh")


def take_another_epsilon(model: Transformer) -> None:
    last(model.last_stack).mlp_residual.norm.eps = 1e-5


def norm_before(model: Transformer) -> None:
    for module in model.modules():
        if isinstance(module, Residual):
            module.where = "post" if module.where == "pre" else "pre"


def skip_the_last_norm(model: Transformer) -> None:
    model.last_stack.norm = nn.Identity()


def skip_the_residual(model: Transformer) -> None:
    residual: Any = last(model.last_stack).mlp_residual
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
    attention = last(model.last_stack).self_attn
    weight, width = attention.q_proj.weight.data, attention.d_head
    attention.q_proj.weight.data = weight.roll(width, dims=0)


def scale_by_the_model(model: Transformer) -> None:
    """√d_model in place of √d_head."""
    attention = last(model.last_stack).cross_attn
    attention.q_proj.weight.data /= attention.n_heads**0.5


def split_heads_across(model: Transformer) -> None:
    """Every n-th number in place of d_head neighbours."""
    for module in model.modules():
        attention: Any = module
        if isinstance(module, MultiHeadAttention):
            attention.split = lambda x: x.unflatten(-1, (4, 3)).permute(0, 3, 1, 2)


def read_the_first_memory(model: Any) -> None:
    """The decoder looks at the source's embedding, not at what the encoder made of it."""
    model.encode = lambda ids, keep, tap: stacks(model)[0].embedding(ids)


MISTAKES: dict[str, Callable[[Transformer], None]] = {
    function.__name__: function
    for function in (
        swap_norms,
        swap_attentions,
        swap_embeddings,
        lose_the_bias_of_the_head,
        take_the_tanh_gelu,
        take_another_epsilon,
        norm_before,
        skip_the_last_norm,
        skip_the_residual,
        leave_embeddings_unscaled,
        shift_positions,
        see_the_future,
        see_padding_of_the_memory,
        turn_heads_around,
        scale_by_the_model,
        split_heads_across,
        read_the_first_memory,
    )
}
BIASED = (
    "self_attn.q_proj",
    "self_attn.v_proj",
    "cross_attn.o_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)
MISTAKES |= {f"lose the bias of {name}": partial(lose_bias, module=name) for name in BIASED}
MISTAKES |= {
    "see the padding of the source": partial(see_padding_of, stack=0),
    "see the padding of the target": partial(see_padding_of, stack=1),
}


def test_every_planted_mistake_is_seen(subtests: pytest.Subtests) -> None:
    for make in MISTAKES.values():
        with subtests.test(make=make):
            ours, theirs = pair()
            with torch.no_grad():
                make(ours)
            with pytest.raises(AssertionError, match="the logits differs by"):
                compare(ours, theirs)
