"""The whole encoder-decoder, once ours and once built around torch.nn.Transformer."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.config import TransformerConfig
from models.positional import sinusoids
from models.transformer import Transformer
from tests.models.building import config_of, ids_of, keep_of_lengths, shaken
from tests.parity.reference import (
    assert_same,
    assert_same_gradients,
    gradients,
    torch_transformer,
    transformer_reference,
)

SOURCE = ids_of(3, 7, 17, seed=4)
TARGET = ids_of(3, 5, 13, seed=5)
SOURCE_KEEP = keep_of_lengths([7, 3, 5], 7)
TARGET_KEEP = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 1, 1, 1], [1, 1, 0, 1, 0]], dtype=torch.bool)
"""Padding inside: on the right causality hides it, on the left torch gives NaN."""


def config(**changes: object) -> TransformerConfig:
    """Post-norm and gelu, with an epsilon large enough to matter."""
    chosen = {"norm_position": "post", "activation": "gelu", "norm_eps": 1e-3} | changes
    return config_of("encoder-decoder", **chosen)


class Reference(nn.Module):
    """torch's Transformer between embeddings and an output layer with our weights."""

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        weights = {name: value.detach().clone() for name, value in ours.state_dict().items()}
        self.config = ours.config
        dtype = weights["head.bias"].dtype
        self.table = sinusoids(torch.arange(7), ours.config.d_model).float().to(dtype)
        self.transformer = transformer_reference(ours)
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


def pair(dtype: torch.dtype = torch.float64, **changes: object) -> tuple[Transformer, Reference]:
    ours = shaken(config(**changes), dtype)
    return ours, Reference(ours)


def compare(ours: Transformer, theirs: Reference) -> None:
    """Logits of the real tokens, and the gradient that each weight gets from them."""
    answer = ours(SOURCE, TARGET, source_keep=SOURCE_KEEP, target_keep=TARGET_KEEP)[TARGET_KEEP]
    expected = theirs(SOURCE, TARGET)[TARGET_KEEP]
    assert_same(answer, expected, "the logits")
    labels = torch.arange(len(expected)) % expected.shape[-1]
    F.cross_entropy(answer, labels).backward()
    F.cross_entropy(expected, labels).backward()
    mine, reference = gradients(ours), gradients(theirs)
    inner = {n.partition(".")[2]: g for n, g in reference.items() if n.startswith("transformer.")}
    assert_same_gradients(torch_transformer(mine, ours.config), inner)
    assert_same(mine["encoder.embedding.weight"], reference["source"])
    assert_same(mine["decoder.embedding.weight"], reference["target"])
    assert_same(mine["head.weight"], reference["out"])
    assert_same(mine["head.bias"], reference["out_bias"])
