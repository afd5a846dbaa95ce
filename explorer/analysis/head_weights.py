"""The matrices of one head of a model of one stack, with the norms around it folded in.

A norm is a linear map but for the scale that it divides by, so its centring and its gain go into
the matrix behind it; the scale, which differs from token to token, and all biases are left out.
Positions that turn queries and keys (rotary) are left out too: what is said of queries and keys
is said of a token and itself.
Shapes: w width of one head, d width of the model.
Source: A Mathematical Framework for Transformer Circuits (Elhage et al. 2021).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from explorer.analysis.frozen_scales import residual_without_scale, without_scale
from models import Transformer
from models.block import Residual


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """What one head reads of the residual stream with, (w, d) each, and what it writes with.

    With a residual stream x, a column, the head's queries, keys and values are `query` x, `key` x
    and `value` x, and it writes `output` (d, w) times its values: the QK circuit is queryᵀ key,
    the OV circuit output value. Heads that share keys and values (grouped-query attention) have
    the same `key` and `value`.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor


def head_weights(model: Transformer, layer: int, head: int) -> HeadWeights:
    """Of one head of the stack that the output is read from, in float64. Costs w × d."""
    config, block = model.config, blocks_of(model)[layer]
    attention, norm = block.self_attn, block.self_residual.input_norm
    with torch.no_grad():
        group = config.kv_head(head)
        query = _read_with(norm, _rows(attention.q_proj, head, attention.d_head))
        key, value = (
            _read_with(norm, _rows(each, group, attention.d_head))
            for each in (attention.k_proj, attention.v_proj)
        )
        # The norm of queries and keys, where there is one, has a gain for every row.
        query, key = (
            each * gain.weight[:, None] if hasattr(gain, "weight") else each
            for each, gain in ((query, attention.q_norm), (key, attention.k_norm))
        )
        written, _ = residual_without_scale(block.self_residual)
        output = written(output_columns(model, layer, head).mT).mT
        return HeadWeights(*(each.double() for each in (query, key, value, output)))


def ov_of_layer(model: Transformer, layer: int) -> tuple[Tensor, Tensor]:
    """`value` (h, w, d) and `output` (h, d, w) of all heads of a layer, as `head_weights` has them.

    Where heads share values, each has a copy.
    """
    config, block = model.config, blocks_of(model)[layer]
    attention, residual = block.self_attn, block.self_residual
    with torch.no_grad():
        value = attention.v_proj.weight.unflatten(0, (-1, attention.d_head))
        value = value.repeat_interleave(config.n_heads // config.kv_heads, 0)
        written = attention.o_proj.weight.mT.unflatten(0, (-1, attention.d_head))
        value = _read_with(residual.input_norm, value)
        output = residual_without_scale(residual)[0](written).mT
    return value.double(), output.double()


def written_later(model: Transformer, layer: int, written: Tensor, until: int) -> Tensor:
    """What layer `until` finds of what attention in an earlier layer wrote, (…, d).

    The same where norms stand in front of the sub-layers or behind them; norms of the residual
    stream itself (post-norm) are linear but for their scale, which is left out.
    """
    for residual in _residuals_between(model, layer, until):
        written = residual_without_scale(residual)[1](written)
    return written


def _residuals_between(model: Transformer, layer: int, until: int) -> Iterator[Residual]:
    for block in blocks_of(model)[layer:until]:
        yield block.self_residual
        if block.mlp is not None:
            yield block.mlp_residual


def _read_with(norm: nn.Module, rows: Tensor) -> Tensor:
    """Rows (…, d) that read the residual stream in front of a norm, but for its scale."""
    back = torch.func.vjp(without_scale(norm), torch.zeros_like(rows))[1]
    found: Tensor = back(rows)[0]
    return found


def blocks_of(model: Transformer) -> Any:
    """The blocks of the stack that the output is read from."""
    return model.last_stack.blocks


def _rows(proj: nn.Linear, group: int, width: int) -> Tensor:
    return proj.weight[group * width :][:width].detach()


def output_columns(model: Transformer, layer: int, head: int) -> Tensor:
    """The columns (d, w) of the output projection that a head's output is multiplied with."""
    attention = blocks_of(model)[layer].self_attn
    found: Tensor = attention.o_proj.weight[:, head * attention.d_head :][:, : attention.d_head]
    return found.detach()
