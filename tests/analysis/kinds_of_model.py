"""Every kind of model that an analysis must hold for, as what differs from a plain decoder."""

from collections.abc import Iterable
from typing import Any

import pytest

from explorer.analysis.wiring import WiringError, wiring_of
from models import TransformerConfig
from models.config import RopeScaling
from tests.tiny import config_of

YARN = RopeScaling("yarn", factor=4.0, original_len=8, attention_factor=1.3)
ROTARY = {"positions": "rotary"}
CLASSIFIER = {"kind": "encoder", "head": "classifier", "n_classes": 3, "n_layers": 2}
MASKED = {"kind": "encoder", "head": "masked-language-model", "n_segments": 2}
KINDS_OF_MODEL: dict[str, dict[str, Any]] = {
    "decoder": {"n_layers": 2},
    "encoder": {"kind": "encoder", "n_layers": 2},
    "both": {"kind": "encoder-decoder", "d_ff_encoder": 24},
    "one table": {"kind": "encoder-decoder", "share_embeddings": True, "src_vocab_size": None},
    "tied": {"tie_embeddings": True, "scale_embedding": False},
    "rotary": ROTARY,
    "partly": {**ROTARY, "d_rotary": 2, "pairs": "adjacent"},
    "stretched": {**ROTARY, "rope_scaling": YARN, "rope_theta": 500.0, "kind": "encoder"},
    "grouped": {**ROTARY, "d_model": 16, "n_heads": 4, "n_kv_heads": 2, "qk_norm": True},
    "rotary, grouped": {**ROTARY, "n_kv_heads": 1, "n_layers": 3, "norm": "rms"},
    "alibi": {"positions": "alibi"},
    "alibi, windows": {"positions": "alibi", "windows": (0, 2, 3), "n_layers": 3},
    "learned": {"positions": "learned", "position_offset": 2, "count_padding": True},
    "relative": {"kind": "encoder-decoder", "positions": "relative", "attention_scale": 1.0},
    "relative, near": {"positions": "relative", "n_buckets": 4, "max_distance": 6},
    "capped": {"attention_cap": 0.5, "positions": "none"},
    "sink logit": {"sink_logit": True, "n_layers": 2, "n_kv_heads": 1},
    "gated heads": {"kind": "encoder-decoder", "gated_attention": True},
    "windows": {**ROTARY, "n_layers": 2, "windows": (3, 0)},
    "after": {"n_layers": 2, "norm_position": "post"},
    "around": {"n_layers": 2, "norm_position": "sandwich", "norm": "rms", "n_kv_heads": 1},
    "beside": {**ROTARY, "n_layers": 2, "parallel": True},
    "behind one norm": {"n_layers": 2, "parallel": True, "shared_norm": True},
    "gated": {"gated": True, "activation": "silu", "bias": False, "qkv_bias": False},
    "few biases": {"out_bias": False, "mlp_bias": False, "head_bias": False, "norm_eps": 1e-3},
    "capped words": {"logit_cap": 2.0, "logit_scale": 0.7},
    "no feed-forward": {"d_ff": 0, "n_layers": 3},
    "no last norm": {"final_norm": False, "dropout": 0.1, "activation_dropout": 0.2},
    "heads of their own width": {"d_model": 10, "d_head": 6},
    "normed queries": {"qk_norm": True, "embedding_norm": True, "n_kv_heads": 1},
    "all sines first": {"kind": "encoder-decoder", "pairs": "halves"},
    "masked": {**MASKED, "embedding_norm": True},
    "first": {**CLASSIFIER, "pooling": "first", "d_classifier": 5},
    "last": {**CLASSIFIER, "pooling": "last", "classifier_bias": False},
    "mean": {**CLASSIFIER, "pooling": "mean", "d_classifier": 5, "classifier_activation": "tanh"},
    "class behind": {
        **CLASSIFIER,
        "norm_position": "post",
        "problem_type": "multi_label_classification",
    },
    "the last token decides": {"head": "classifier", "pooling": "last"},
}
QUICK = ["sink logit", "gated heads", *"grouped relative capped after around beside mean".split()]
"""Every kind, scheme of scores, order of norms and head is among them."""
CONFIGS = {name: config_of(**changes) for name, changes in KINDS_OF_MODEL.items()}
UNREAD = {"bos_id", "generation"}
"""Fields that only generation reads, so no analysis differs by them."""


def each_kind(names: Iterable[str], *also: str) -> list[Any]:
    """Parameters for a test of these kinds: QUICK and `also`, or all with `--thorough`."""
    quick = {*QUICK, *also}
    return [
        pytest.param(name, marks=[pytest.mark.thorough] * (name not in quick)) for name in names
    ]


def has_edges(config: TransformerConfig) -> bool:
    try:
        return bool(wiring_of(config).edges)
    except WiringError:
        return False


WIRED = {name: config for name, config in CONFIGS.items() if has_edges(config)}
SUMMED = {
    name: config
    for name, config in CONFIGS.items()
    if name not in WIRED and config.kind != "encoder-decoder"
}
"""Models of one stack whose residual stream is no plain sum of what was written."""
