"""A block is torch.nn.TransformerEncoderLayer, forward and backward."""

from __future__ import annotations

import torch

from models.block import Block, Surroundings
from models.masking import causal_mask, padding_mask
from tests.grids import grid
from tests.models.building import SMALL, keep_of_lengths, shake
from tests.parity.reference import (
    TOLERANCE,
    assert_same,
    assert_same_gradients,
    gradients,
    layer_reference,
    torch_layer,
)

KEEP = keep_of_lengths([5, 2, 4], 5)


@grid(
    "dtype, masked, activation, norm_position",
    TOLERANCE,
    ["nothing", "padding", "causal"],
    ["relu", "gelu"],
    ["pre", "post"],
)
def test_encoder_layer(
    norm_position: str, activation: str, masked: str, dtype: torch.dtype
) -> None:
    config = SMALL.replace(norm_position=norm_position, activation=activation, norm_eps=1e-4)
    ours = shake(Block(config).to(dtype))
    theirs = layer_reference(ours, config)
    x = torch.randn(3, 5, 12, generator=torch.Generator().manual_seed(1)).to(dtype)
    masks = {"nothing": None, "padding": padding_mask(KEEP), "causal": causal_mask(5)}
    answer = ours(x, Surroundings(masks={0: masks[masked]}))
    expected = theirs(
        x,
        src_mask=~causal_mask(5)[0, 0] if masked == "causal" else None,
        src_key_padding_mask=~KEEP if masked == "padding" else None,
    )
    assert_same(answer, expected)
    answer.square().sum().backward()
    expected.square().sum().backward()
    assert_same_gradients(torch_layer(gradients(ours)), gradients(theirs))
