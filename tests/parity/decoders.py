"""Tiny published decoders: no two of their sizes can be taken for each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import transformers as hf

from tests.parity.families import Case

Sizes = dict[str, Any]
TOKENS: Sizes = {"vocab_size": 53, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LAYERS: Sizes = {"num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 37}
SIZES = TOKENS | LAYERS | {"hidden_size": 64, "intermediate_size": 84}
"""A width whose root is whole, so that Gemma's factor is the same in 32 bits and in 64."""
GROUPED = SIZES | {"num_key_value_heads": 2}
GPT2 = TOKENS | {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_inner": 84, "n_positions": 37}
GPTJ = GPT2 | {"rotary_dim": 6}
NEO: Sizes = TOKENS | {
    "hidden_size": 64,
    "num_layers": 3,
    "num_heads": 4,
    "intermediate_size": 84,
    "max_position_embeddings": 37,
    "attention_types": [[["local", "global"], 1], [["local"], 1]],
}
OPT = TOKENS | LAYERS | {"hidden_size": 64, "ffn_dim": 84}
BLOOM = TOKENS | {"hidden_size": 36, "n_layer": 3, "n_head": 4}
WINDOW: Sizes = {"sliding_window": 5}
"""Shorter than the texts."""


def decoder(
    name: str,
    model: str,
    sizes: Mapping[str, Any],
    *,
    head: str = "ForCausalLM",
    shards: bool = False,
    exact: bool = True,
    by: float = 0.2,
    **more: Any,
) -> Case:
    """The case of `{model}{head}` with these sizes and what else its config says."""
    config = getattr(hf, model + "Config")(**(dict(sizes) | more))
    return Case(name, config, getattr(hf, model + head), shards=shards, exact=exact, by=by)


def published(name: str, model: str, values: Mapping[str, Any], head: str = "ForCausalLM") -> Case:
    """The same from a config.json as others wrote it, read by the reference too."""
    config = getattr(hf, model + "Config")
    values = {"model_type": config.model_type, "architectures": [model + head]} | dict(values)
    reference = getattr(hf, model + head)
    return Case(name, config.from_dict(dict(values)), reference, published=values)
