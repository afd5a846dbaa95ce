"""ViT is the reference: an image's patches are tokens like any others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import ViTConfig, ViTForImageClassification, ViTModel

from explorer.text import TextError
from explorer.tokenizing import tokenizer_of
from models.checkpoint import load_checkpoint
from models.config import TransformerConfig
from models.families import FAMILIES
from models.trace import CHEAP_SITES, EVERYTHING, trace
from tests.grids import grid
from tests.parity.comparing import assert_close
from tests.parity.families import Case, Pair, build_reference

SIZES = {
    "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40,
    "image_size": 15, "patch_size": 5, "num_channels": 2, "num_labels": 7,
}  # fmt: skip
CASES = [
    Case("classes", ViTConfig(**SIZES), ViTForImageClassification),
    Case("bare", ViTConfig(**SIZES, qkv_bias=False), ViTModel, unused=("pooler.dense.*",)),
    Case("a cut edge", ViTConfig(**SIZES | {"image_size": 17}), ViTForImageClassification),
]


def opened(case: Case, folder: Path, *, shaken: bool = True) -> Pair:
    reference = build_reference(case, shaken)
    reference.save_pretrained(folder)
    return Pair(case, reference, load_checkpoint(folder))


def images(case: Case, dtype: torch.dtype = torch.float32) -> Tensor:
    side = case.config.image_size
    return torch.randn(3, 2, side, side, generator=torch.Generator().manual_seed(5)).to(dtype)


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


@grid("shaken, case", [True, False], CASES)
def test_is_the_reference(case: Case, shaken: bool, tmp_path: Path) -> None:
    pair = opened(case, tmp_path, shaken=shaken)
    assert all(name.startswith("pooler.") for name in pair.ours.unused)
    same(pair, images(case))


@pytest.mark.parametrize(
    "changes",
    [
        {"activation": "gelu-tanh"},
        {"norm_position": "post"},
        {"final_norm": False},
        {"pooling": "mean"},
    ],
    ids=str,
)
def test_mistakes_are_caught(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = FAMILIES["vit"]

    def wrong(read: Any) -> TransformerConfig:
        return family.config(read).replace(**changes)

    monkeypatch.setitem(FAMILIES, "vit", replace(family, config=wrong))
    with pytest.raises(AssertionError, match="differs by"):
        same(opened(CASES[0], tmp_path), images(CASES[0]))


@pytest.mark.parametrize("shape", [(2, 10, 20), (2, 20, 15), (3, 15, 15), (2, 5, 5)], ids=str)
def test_another_size_is_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    ours = opened(CASES[0], tmp_path).ours.model
    with pytest.raises(ValueError, match="An image is 2 × 15 × 15 numbers here, not"):
        ours(torch.zeros(1, *shape))


def test_pages_of_texts_say_that_it_reads_images(tmp_path: Path) -> None:
    with pytest.raises(TextError, match="It reads images"):
        tokenizer_of(opened(CASES[0], tmp_path).ours)
