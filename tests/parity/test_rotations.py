"""Rotary positions as published files write them down, older and newer, short and long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.checkpoint import CheckpointError, load_checkpoint
from tests.parity.comparing import compare
from tests.parity.decoders import GROUPED, SIZES, WINDOW, published
from tests.parity.families import Case, build_reference, inputs_of, open_pair

LINEAR = {"factor": 3.0}
LLAMA3 = {
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 3.0,
    "original_max_position_embeddings": 16,
}
YARN = {"factor": 5.0, "original_max_position_embeddings": 12}
LONG = GROUPED | {"max_position_embeddings": 96}
"""Longer than what the scalings call the training's length."""
LONGEST = 70


def older(kind: str, scaling: dict[str, Any], **more: Any) -> dict[str, Any]:
    return LONG | {"rope_theta": 300.0, "rope_scaling": {"type": kind, **scaling}} | more


def newer(kind: str, scaling: dict[str, Any], **more: Any) -> dict[str, Any]:
    parameters = {"rope_type": kind, "rope_theta": 300.0, **scaling}
    return LONG | {"rope_parameters": parameters} | more


CASES = [
    published("θ beside the rest", "Llama", LONG | {"rope_theta": 300.0}),
    published("θ inside", "Llama", newer("default", {})),
    published("no θ at all", "Llama", LONG),
    published("nothing is scaled", "Llama", LONG | {"rope_theta": 300.0, "rope_scaling": None}),
    published("linear, older", "Llama", older("linear", LINEAR)),
    published("linear, newer", "Llama", newer("linear", LINEAR)),
    published("llama3, older", "Llama", older("llama3", LLAMA3)),
    published("llama3, newer", "Llama", newer("llama3", LLAMA3)),
    published("yarn, older", "Qwen2", older("yarn", YARN)),
    published("yarn, newer", "Qwen3", newer("yarn", YARN, head_dim=10)),
    published(
        "yarn, its own turns", "Llama", newer("yarn", YARN | {"beta_fast": 3.0, "beta_slow": 0.4})
    ),
    published("yarn, ramp not rounded", "Llama", newer("yarn", YARN | {"truncate": False})),
    published("yarn, its own factor", "Llama", newer("yarn", YARN | {"attention_factor": 0.7})),
    published(
        "yarn, two scales", "Llama", newer("yarn", YARN | {"mscale": 0.7, "mscale_all_dim": 1.3})
    ),
    published("yarn, factor from lengths", "Llama", newer("yarn", YARN | {"factor": None})),
    published(
        "llama3, both ways",
        "Llama",
        newer("llama3", LLAMA3)
        | {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "rope_theta": 77.0}},
    ),
    published("yarn and a window", "Mistral", newer("yarn", YARN, **WINDOW)),
    published("gemma2, linear", "Gemma2", newer("linear", LINEAR, head_dim=10, **WINDOW)),
    published(
        "gpt_neox, older",
        "GPTNeoX",
        SIZES
        | {
            "rotary_pct": 0.4,
            "rotary_emb_base": 300,
            "rope_scaling": {"type": "linear", "factor": 2.0},
        },
    ),
    published(
        "gpt_neox, newer",
        "GPTNeoX",
        SIZES
        | {
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 300.0,
                "partial_rotary_factor": 0.4,
            }
        },
    ),
    published("gpt_neox, by default", "GPTNeoX", SIZES),
    published("phi3, newer", "Phi3", newer("default", {"partial_rotary_factor": 0.4})),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_turns_as_the_reference_does(case: Case, tmp_path: Path) -> None:
    pair = open_pair(case, tmp_path)
    compare(pair, inputs_of(pair, LONGEST, "left"))
    compare(pair, inputs_of(pair, LONGEST))


REFUSED = {
    "dynamic": ("Llama", older("dynamic", LINEAR), "'dynamic'"),
    "longrope": (
        "Phi3",
        newer("longrope", {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8}),
        "'longrope'",
    ),
    "su": ("Phi3", older("su", {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8}), "'su'"),
    "yarn of phi3": ("Phi3", newer("yarn", YARN), "'yarn'"),
    "a part of llama's head": ("Llama", newer("default", {"partial_rotary_factor": 0.5}), "0.5"),
    "one for each kind of layer": (
        "Gemma2",
        LONG | {"rope_parameters": {"full_attention": {"rope_type": "default"}}},
        "object of plain values",
    ),
    "linear by nothing": ("Llama", older("linear", {}), "a factor"),
    "llama3 without its bounds": ("Llama", older("llama3", LINEAR), "low_freq_factor"),
}


@pytest.mark.parametrize(("model", "values", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_supported_is_refused_by_name(
    model: str, values: dict[str, Any], words: str, tmp_path: Path
) -> None:
    plain = published("plain", model, LONG)
    build_reference(plain).save_pretrained(tmp_path)
    named = {"model_type": plain.config.model_type} | values
    (tmp_path / "config.json").write_text(json.dumps(named))
    with pytest.raises(CheckpointError, match=words):
        load_checkpoint(tmp_path)
