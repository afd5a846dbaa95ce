"""Our weights in torch's own modules, and a comparison of both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.attention import MultiHeadAttention
from models.config import TransformerConfig
from models.positional import sinusoids
from models.transformer import Transformer
from tests.models.building import ids_of, keep_of_lengths

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
NAMES = {
    "mlp.up_proj": "linear1",
    "mlp.down_proj": "linear2",
    "self_residual.norm": "norm1",
    "cross_residual.norm": "norm2",
}
Module = TypeVar("Module", bound=nn.Module)
Values = Mapping[str, Tensor]

SOURCE = ids_of(3, 7, 17, seed=4)
TARGET = ids_of(3, 5, 13, seed=5)
SOURCE_KEEP = keep_of_lengths([7, 3, 5], 7)
TARGET_KEEP = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 1, 1, 1], [1, 1, 0, 1, 0]], dtype=torch.bool)
"""Padding inside: on the right causality hides it, on the left torch gives NaN."""


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


class TransformerReference(nn.Module):
    """torch's Transformer between embeddings and an output layer with our weights."""

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        weights = {name: value.detach().clone() for name, value in ours.state_dict().items()}
        config = ours.config
        inner = nn.Transformer(
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
        self.transformer = filled(inner, torch_transformer(weights, config))
        dtype = weights["head.bias"].dtype
        self.table = sinusoids(torch.arange(7), config.d_model).float().to(dtype)
        self.source = nn.Parameter(weights["encoder.embedding.weight"])
        self.target = nn.Parameter(weights["decoder.embedding.weight"])
        self.out = nn.Parameter(weights["head.weight"])
        self.out_bias = nn.Parameter(weights["head.bias"])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        stream = self.transformer(
            self.embed(source, self.source, SOURCE_KEEP),
            self.embed(target, self.target, TARGET_KEEP),
            tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
            src_key_padding_mask=~SOURCE_KEEP,
            tgt_key_padding_mask=~TARGET_KEEP,
            memory_key_padding_mask=~SOURCE_KEEP,
        )
        return F.linear(stream, self.out, self.out_bias)

    def embed(self, ids: Tensor, table: Tensor, keep: Tensor) -> Tensor:
        positions = (keep.cumsum(1) - 1).clamp(min=0)
        return F.embedding(ids, table) * math.sqrt(table.shape[1]) + self.table[positions]


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


def compare_attention(
    answer: Tensor, expected: Tensor, ours: MultiHeadAttention, theirs: nn.MultiheadAttention
) -> None:
    """The answers and the gradients of every weight."""
    assert_same(answer, expected)
    direction = torch.linspace(-1, 1, expected.numel()).view_as(expected).to(expected.dtype)
    (answer * direction).sum().backward()
    (expected * direction).sum().backward()
    assert_same_gradients(torch_attention(gradients(ours)), gradients(theirs))


def compare_transformers(ours: Transformer, theirs: TransformerReference) -> None:
    """Logits of the real tokens, and the gradient that each weight gets from them."""
    answer = ours(SOURCE, TARGET, source_keep=SOURCE_KEEP, target_keep=TARGET_KEEP)[TARGET_KEEP]
    expected = theirs(SOURCE, TARGET)[TARGET_KEEP]
    assert_same(answer, expected, "the logits")
    labels = torch.arange(len(expected)) % expected.shape[-1]
    F.cross_entropy(answer, labels).backward()
    F.cross_entropy(expected, labels).backward()
    mine, reference = gradients(ours), gradients(theirs)
    inner = under(reference, "transformer")
    assert_same_gradients(torch_transformer(mine, ours.config), inner)
    assert_same(mine["encoder.embedding.weight"], reference["source"])
    assert_same(mine["decoder.embedding.weight"], reference["target"])
    assert_same(mine["head.weight"], reference["out"])
    assert_same(mine["head.bias"], reference["out_bias"])
