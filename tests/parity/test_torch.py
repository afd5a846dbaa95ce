"""The whole model is torch.nn.Transformer, forward and backward, with padding in every place;
attention alone is torch.nn.MultiheadAttention.
"""

import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.attention import MultiHeadAttention
from models.model import Transformer
from models.positional import sinusoids
from models.trace import RecordingTap
from tests.closeness import assert_close_to
from tests.grids import grid
from tests.tiny import config_of, ids_of, keep_of_lengths, shake, shaken

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")
DTYPES = (torch.float64, torch.float32)

RENAMED = {
    ".blocks.": ".layers.",
    **dict.fromkeys(("q_proj.", "k_proj.", "v_proj."), "in_proj_"),
    "o_proj": "out_proj",
    "cross_attn": "multihead_attn",
    "mlp.up_proj": "linear1",
    "mlp.down_proj": "linear2",
    "self_residual.norm": "norm1",
    "cross_residual.norm": "norm2",
}
Values = Mapping[str, Tensor]

SOURCE = ids_of(3, 7, 17, seed=4)
TARGET = ids_of(3, 5, 13, seed=5)
SOURCE_KEEP = keep_of_lengths([7, 3, 5], 7)
TARGET_KEEP = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 1, 1, 1], [1, 1, 0, 1, 0]], dtype=torch.bool)
"""Padding inside: on the right causality hides it, on the left torch gives NaN."""


def torch_values(values: Values) -> dict[str, Tensor]:
    """Values of the two stacks, weights or gradients, by the names that torch gives them."""
    renamed: dict[str, Tensor] = {}
    for name, value in values.items():
        if ".blocks." in name or name.startswith(("encoder.norm.", "decoder.norm.")):
            last = "norm2" if name.startswith("encoder.") else "norm3"
            for ours, theirs in (RENAMED | {"mlp_residual.norm": last}).items():
                name = name.replace(ours, theirs)
            # Queries, keys and values are one tensor there, in this order.
            renamed[name] = torch.cat([renamed[name], value]) if name in renamed else value
    return renamed


class Reference(nn.Module):
    """torch's Transformer between embeddings and an output layer with our weights."""

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        weights = {name: value.detach().clone() for name, value in ours.state_dict().items()}
        config = ours.config
        sizes = config.d_model, config.n_heads, config.encoder_layers, config.n_layers, config.d_ff
        how: dict[str, Any] = {"activation": config.activation, "layer_norm_eps": config.norm_eps}
        how |= {"norm_first": config.norm_position == "pre", "dtype": weights["head.bias"].dtype}
        self.transformer = nn.Transformer(*sizes, dropout=0.0, batch_first=True, **how)
        # Every weight is overwritten. With dropout 0 it stays in training: in eval mode torch
        # leaves this path for another.
        self.transformer.load_state_dict(torch_values(weights), strict=True)
        table = sinusoids(torch.arange(7), config.d_model).float()
        self.table = table.to(weights["head.bias"].dtype)
        self.source = nn.Parameter(weights["encoder.embedding.weight"])
        self.target = nn.Parameter(weights["decoder.embedding.weight"])
        self.out = nn.Parameter(weights["head.weight"])
        self.out_bias = nn.Parameter(weights["head.bias"])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        read = self.embed(source, self.source, SOURCE_KEEP)
        written = self.embed(target, self.target, TARGET_KEEP)
        masks = {f"{side}_key_padding_mask": ~SOURCE_KEEP for side in ("src", "memory")}
        masks |= {"tgt_key_padding_mask": ~TARGET_KEEP}
        later = torch.ones(5, 5, dtype=torch.bool).triu(1)
        stream = self.transformer(read, written, tgt_mask=later, **masks)
        return F.linear(stream, self.out, self.out_bias)

    def embed(self, ids: Tensor, table: Tensor, keep: Tensor) -> Tensor:
        positions = (keep.cumsum(1) - 1).clamp(min=0)
        return F.embedding(ids, table) * math.sqrt(table.shape[1]) + self.table.to(table)[positions]


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {n: p.grad for n, p in module.named_parameters() if p.grad is not None}


def assert_same_gradients(ours: Values, theirs: Values) -> None:
    assert ours.keys() == theirs.keys()
    for name, gradient in theirs.items():
        assert_close_to(ours[name], gradient, what=f"the gradient of {name}")


def compare(ours: Transformer, theirs: Reference) -> None:
    """Logits of the real tokens, and the gradient that each weight gets from them."""
    answer = ours(SOURCE, TARGET, source_keep=SOURCE_KEEP, target_keep=TARGET_KEEP)[TARGET_KEEP]
    expected = theirs(SOURCE, TARGET)[TARGET_KEEP]
    assert_close_to(answer, expected, what="the logits")
    labels = torch.arange(len(expected)) % expected.shape[-1]
    F.cross_entropy(answer, labels).backward()
    F.cross_entropy(expected, labels).backward()
    mine, reference = gradients(ours), gradients(theirs)
    inner = {n.partition(".")[2]: g for n, g in reference.items() if n.startswith("transformer.")}
    assert_same_gradients(torch_values(mine), inner)
    assert_close_to(mine["encoder.embedding.weight"], reference["source"])
    assert_close_to(mine["decoder.embedding.weight"], reference["target"])
    assert_close_to(mine["head.weight"], reference["out"])
    assert_close_to(mine["head.bias"], reference["out_bias"])


@grid("dtype, activation, norm_position", DTYPES, ["relu", "gelu"], ["pre", "post"])
def test_transformer(norm_position: str, activation: str, dtype: torch.dtype) -> None:
    """With an epsilon large enough to matter."""
    chosen = {"norm_position": norm_position, "activation": activation, "norm_eps": 1e-3}
    ours = shaken(config_of("encoder-decoder", **chosen), dtype)
    compare(ours, Reference(ours))


def torch_attention(values: Values) -> dict[str, Tensor]:
    """Values of one attention by the names that torch gives them."""
    renamed = {}
    for kind in ("weight", "bias"):
        renamed[f"in_proj_{kind}"] = torch.cat([values[f"{x}_proj.{kind}"] for x in "qkv"])
        renamed[f"out_proj.{kind}"] = values[f"o_proj.{kind}"]
    return renamed


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_attention_has_a_mask_of_its_own_in_every_head(dtype: torch.dtype) -> None:
    ours = shake(MultiHeadAttention(12, 3).to(dtype))
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, dtype=dtype)
    theirs.load_state_dict(torch_attention(ours.state_dict()))
    generator = torch.Generator().manual_seed(3)
    x, memory = (torch.randn(2, length, 12, generator=generator).to(dtype) for length in (5, 7))
    mask = torch.rand(2, 3, 5, 7, generator=generator) < 0.5
    mask[..., 0] = True  # torch gives NaN to a query that sees nothing
    tap = RecordingTap()
    watched, fused = ours(x, memory, mask, tap=tap), ours(x, memory, mask)
    hidden = ~mask.flatten(0, 1)
    answer, expected = theirs(x, memory, memory, attn_mask=hidden, average_attn_weights=False)
    assert_close_to(tap.values["weights"], expected)
    assert_close_to(watched, answer)
    assert_close_to(fused, answer)
    for one in (fused, answer):
        one.square().sum().backward()
    assert_same_gradients(torch_attention(gradients(ours)), gradients(theirs))
