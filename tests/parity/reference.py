"""Our weights in torch's own modules, and a comparison of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

from models.attention import MultiHeadAttention
from models.block import Block
from models.config import TransformerConfig
from models.transformer import Transformer

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
NAMES = {
    "mlp.up_proj": "linear1",
    "mlp.down_proj": "linear2",
    "self_residual.norm": "norm1",
    "cross_residual.norm": "norm2",
}
Module = TypeVar("Module", bound=nn.Module)
Values = Mapping[str, Tensor]


def torch_attention(values: Values) -> dict[str, Tensor]:
    """Values of a MultiHeadAttention, weights or gradients, by the names torch gives them."""
    renamed = {}
    for kind in ("weight", "bias"):
        renamed[f"in_proj_{kind}"] = torch.cat([values[f"{x}_proj.{kind}"] for x in "qkv"])
        renamed[f"out_proj.{kind}"] = values[f"o_proj.{kind}"]
    return renamed


def torch_layer(values: Values) -> dict[str, Tensor]:
    """The same for a block: an encoder layer, or a decoder layer where there is cross-attention."""
    crosses = "cross_residual.norm.weight" in values
    names = NAMES | {"mlp_residual.norm": "norm3" if crosses else "norm2"}
    renamed: dict[str, Tensor] = {}
    for module, theirs in names.items():
        renamed |= {f"{theirs}.{kind}": value for kind, value in under(values, module).items()}
    for ours, theirs in (("self_attn", "self_attn"), ("cross_attn", "multihead_attn")):
        if crosses or ours == "self_attn":
            attention = torch_attention(under(values, ours))
            renamed |= {f"{theirs}.{name}": value for name, value in attention.items()}
    return renamed


def torch_transformer(values: Values, config: TransformerConfig) -> dict[str, Tensor]:
    """The same for the two stacks of an encoder-decoder."""
    renamed: dict[str, Tensor] = {}
    for stack, depth in (("encoder", config.encoder_layers), ("decoder", config.n_layers)):
        for i in range(depth):
            layer = torch_layer(under(values, f"{stack}.blocks.{i}"))
            renamed |= {f"{stack}.layers.{i}.{name}": value for name, value in layer.items()}
        norm = under(values, f"{stack}.norm")
        renamed |= {f"{stack}.norm.{name}": value for name, value in norm.items()}
    return renamed


def under(values: Values, prefix: str) -> dict[str, Tensor]:
    start = prefix + "."
    return {name[len(start) :]: v for name, v in values.items() if name.startswith(start)}


def attention_reference(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    reference = nn.MultiheadAttention(ours.q_proj.in_features, ours.n_heads, batch_first=True)
    return filled(reference, torch_attention(ours.state_dict()))


def layer_reference(ours: Block, config: TransformerConfig) -> nn.TransformerEncoderLayer:
    reference = nn.TransformerEncoderLayer(
        config.d_model,
        config.n_heads,
        config.d_ff,
        dropout=0.0,
        activation=config.activation,
        layer_norm_eps=config.norm_eps,
        batch_first=True,
        norm_first=config.norm_position == "pre",
    )
    return filled(reference, torch_layer(ours.state_dict()))


def transformer_reference(ours: Transformer) -> nn.Transformer:
    config = ours.config
    reference = nn.Transformer(
        config.d_model,
        config.n_heads,
        config.encoder_layers,
        config.n_layers,
        config.d_ff,
        dropout=0.0,
        activation=config.activation,
        layer_norm_eps=config.norm_eps,
        batch_first=True,
        norm_first=config.norm_position == "pre",
    )
    return filled(reference, torch_transformer(ours.state_dict(), config))


def filled(reference: Module, weights: Values) -> Module:
    """The reference with exactly these weights: every one of its own is overwritten."""
    dtype = next(iter(weights.values())).dtype
    reference.to(dtype).load_state_dict(dict(weights), strict=True)
    return reference.train()  # with dropout 0; in eval mode torch leaves this path for another


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {n: p.grad for n, p in module.named_parameters() if p.grad is not None}


def assert_same(ours: Tensor, theirs: Tensor, what: str = "output") -> None:
    """Equal up to rounding, relative to the largest number."""
    assert ours.shape == theirs.shape, what
    scale = max(1.0, theirs.abs().max().item())
    difference = (ours - theirs).abs().max().item() / scale
    assert difference <= TOLERANCE[theirs.dtype], f"{what} differs by {difference:.2g}"


def assert_same_gradients(ours: Values, theirs: Values) -> None:
    assert ours.keys() == theirs.keys()
    for name, gradient in theirs.items():
        assert_same(ours[name], gradient, f"the gradient of {name}")
