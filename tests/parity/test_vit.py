"""ViT is the reference: an image's patches are tokens like any others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import ViTConfig, ViTForImageClassification, ViTModel

from explorer.text import TextError
from explorer.tokenizing import tokenizer_of
from models.checkpoint import load_checkpoint
from models.trace import CHEAP_SITES, EVERYTHING, trace
from tests.grids import grid
from tests.parity.families import Case, Pair, assert_close, build_reference, open_pair

SIZES = {
    "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40,
    "image_size": 15, "patch_size": 5, "num_channels": 2, "num_labels": 7,
}  # fmt: skip
CASES = [
    Case("classes", ViTConfig(**SIZES), ViTForImageClassification),
    Case("bare", ViTConfig(**SIZES, qkv_bias=False), ViTModel, unused=("pooler.dense.*",)),
    Case("a cut edge", ViTConfig(**SIZES | {"image_size": 17}), ViTForImageClassification),
]


def images(case: Case) -> Tensor:
    side = case.config.image_size
    return torch.randn(3, 2, side, side, generator=torch.Generator().manual_seed(5))


def same(pair: Pair, pixels: Tensor) -> None:
    with torch.no_grad():
        theirs: Any = pair.reference(pixels, output_hidden_states=True, output_attentions=True)
    for sites in (EVERYTHING, CHEAP_SITES):
        ours = trace(pair.ours.model, pixels, sites=sites)
        for i, weights in enumerate(theirs.attentions):
            assert_close(ours.weights(f"encoder.{i}.self_attn"), weights, "weights")
            assert_close(ours[f"encoder.{i}.resid_pre"], theirs.hidden_states[i], "stream")
            assert_close(ours[f"encoder.{i}.resid_post"], theirs.hidden_states[i + 1], "stream")
        answer = theirs.logits if "logits" in theirs else theirs.last_hidden_state
        assert_close(ours.output, answer, "answer")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """The first case as the reference saves it."""
    build_reference(CASES[0]).save_pretrained(tmp_path)
    return tmp_path


@grid("shaken, case", [True, False], CASES)
def test_is_the_reference(case: Case, shaken: bool, tmp_path: Path) -> None:
    same(open_pair(case, tmp_path, shaken=shaken), images(case))


def test_another_size_is_refused(saved: Path) -> None:
    ours = load_checkpoint(saved).model
    for shape in [(2, 10, 20), (2, 20, 15), (3, 15, 15), (2, 5, 5)]:
        with pytest.raises(ValueError, match="An image is 2 × 15 × 15 numbers here, not"):
            ours(torch.zeros(1, *shape))


def test_pages_of_texts_say_that_it_reads_images(saved: Path) -> None:
    with pytest.raises(TextError, match="It reads images"):
        tokenizer_of(load_checkpoint(saved))
