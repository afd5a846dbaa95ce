"""A shaken model of every kind over one text, in double precision, for what must hold of all."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.catalog.opened_model import Opened
from explorer.inference import forward_pass
from explorer.inference.forward_pass import ForwardPass
from explorer.text import word_tokenizer
from explorer.text.token import DECODER, SOURCE
from models.config import RopeScaling
from tests.tiny import WORDS, saved_and_opened

YARN = RopeScaling("yarn", factor=4.0, original_len=8, attention_factor=1.3)
ROTARY = {"positions": "rotary", "kind": "decoder"}
CLASSIFIER = {"kind": "encoder", "head": "classifier", "n_classes": 3, "n_layers": 2}
MODELS: dict[str, dict[str, Any]] = {
    "encoder": {"kind": "encoder", "head": "language-model", "n_layers": 2},
    "decoder": {"kind": "decoder", "n_layers": 2},
    "both": {"kind": "encoder-decoder"},
    "rotary": ROTARY,
    "partly": {**ROTARY, "d_rotary": 4, "pairs": "adjacent"},
    "stretched": {**ROTARY, "rope_scaling": YARN, "kind": "encoder", "head": "language-model"},
    "grouped": {**ROTARY, "n_heads": 4, "n_kv_heads": 2, "qk_norm": True},
    "alibi": {"kind": "decoder", "positions": "alibi"},
    "relative": {"kind": "encoder-decoder", "positions": "relative", "attention_scale": 1.0},
    "capped": {"kind": "decoder", "attention_cap": 0.5, "positions": "none"},
    "windows": {**ROTARY, "windows": (3,)},
    "before": {"kind": "decoder", "n_layers": 2, "norm_position": "pre", "final_norm": True},
    "after": {"kind": "decoder", "n_layers": 2, "norm_position": "post"},
    "around": {"kind": "decoder", "n_layers": 2, "norm_position": "sandwich", "norm": "rms"},
    "beside": {"kind": "decoder", "n_layers": 2, "parallel": True, "norm_position": "pre"},
    "capped words": {"kind": "decoder", "logit_cap": 2.0, "logit_scale": 0.7},
    "no feed-forward": {"kind": "decoder", "d_ff": 0, "n_layers": 2},
    "all sines first": {"kind": "encoder-decoder", "positions": "sinusoidal", "pairs": "halves"},
    "masked": {"kind": "encoder", "head": "masked-language-model", "embedding_norm": True},
    "first": {**CLASSIFIER, "pooling": "first", "d_classifier": 5},
    "last": {**CLASSIFIER, "pooling": "last"},
    "mean": {**CLASSIFIER, "pooling": "mean", "d_classifier": 5, "classifier_activation": "tanh"},
}
FEW = ("grouped", "relative", "capped", "after", "around", "beside", "mean")
"""Every kind, scheme of scores, order of norms and head is among them."""
TEXT = "the black cat sleeps le chat"


def opened_of(folder: Path, name: str, dtype: torch.dtype = torch.float64) -> Opened:
    """A shaken model of this kind, which is put into this folder."""
    words = word_tokenizer(WORDS, SOURCE if MODELS[name]["kind"] == "encoder-decoder" else DECODER)
    return saved_and_opened(folder, name, words, shaken_by=0.4, dtype=dtype, **MODELS[name])


def read(folder: Path, name: str) -> ForwardPass:
    """Its reading of the text."""
    return forward_pass.run_batch_uncached(opened_of(folder, name), (TEXT,))[0]


def inputs_of(found: ForwardPass) -> list[Tensor]:
    """What the model was given to read: ids, or source and target."""
    sides = [side for side in (found.source, found.target) if side]
    return [torch.tensor([[token.id for token in side]]) for side in sides]


@pytest.fixture(
    params=[
        pytest.param(name, marks=[] if name in FEW else pytest.mark.thorough) for name in MODELS
    ]
)
def found(request: pytest.FixtureRequest, tmp_path: Path) -> ForwardPass:
    """A reading that a test may change."""
    return read(tmp_path, request.param)
