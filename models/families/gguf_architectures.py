"""GGUF files as checkpoints of a published family: each architecture's metadata to its config.

Every table restores the config.json that the file was converted from, as far as it matters;
the family then reads it as its own. What llama.cpp has in its code and not in the file is the
family's default. Source: llama.cpp's conversion scripts.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from models.config import TransformerConfig
from models.families import FAMILIES
from models.families.family import SUGGESTION, Family, Names
from models.families.gguf_metadata import ROPE_FACTORS, Metadata
from models.families.gguf_names import gate_in_up, gguf_names, two_stack_names
from models.loading.safe_files import quoted

Values = dict[str, Any]
LAYERS_OF_27B = 46
"""Gemma 2 of this depth scales its scores in another way, which the metadata do not mention."""
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
"""Constants of every Llama 3: a file has only the frequencies that follow from them."""


@dataclass(frozen=True)
class Architecture:
    """How the files of one architecture are read: their config and the names of their tensors."""

    config: Callable[[Metadata], Values]
    names: Callable[[TransformerConfig], Names] = gguf_names


def describe(
    values: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    numbers: Callable[[str], Tensor],
) -> tuple[Values, Family]:
    """The published config.json that a file stands for, and the family with the file's names.

    ValueError, in one sentence, for an unknown architecture or a missing value. `numbers`
    reads a tensor; only that of ROPE_FACTORS is needed.
    """
    metadata = Metadata(values, shapes, numbers)
    architecture = ARCHITECTURES.get(metadata.architecture)
    if architecture is None:
        raise ValueError(
            f"the architecture {quoted(metadata.architecture)} is not supported; {SUGGESTION}."
        )
    metadata.require("expert_count", None, 0)
    metadata.require("attention.clamp_kqv", None, 0.0)
    config = architecture.config(metadata)
    family = replace(
        FAMILIES[config["model_type"]],
        names=architecture.names,
        prefix="",
        output="output.weight",
        apart=None,
        optional={},
        published=None,
    )
    return config, family


def usual(metadata: Metadata, family: str, **more: Any) -> Values:
    """The values that almost every architecture has, by the usual names, and `more` of its own."""
    heads = metadata.whole("attention.head_count")
    return {
        "model_type": family,
        "vocab_size": metadata.rows("token_embd.weight"),
        "hidden_size": metadata.whole("embedding_length"),
        "num_hidden_layers": metadata.whole("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": metadata.whole("attention.head_count_kv", heads),
        "intermediate_size": metadata.whole("feed_forward_length"),
        "max_position_embeddings": metadata.whole("context_length"),
        "tie_word_embeddings": not metadata.has("output.weight"),
        "bos_token_id": metadata.token("bos"),
        "eos_token_id": metadata.token("eos"),
        "pad_token_id": metadata.token("padding"),
        **more,
    }


def rms_eps(metadata: Metadata) -> float:
    return metadata.number("attention.layer_norm_rms_epsilon")


def layer_eps(metadata: Metadata) -> float:
    return metadata.number("attention.layer_norm_epsilon")


def head_width(metadata: Metadata) -> int:
    heads = metadata.whole("attention.head_count")
    width = metadata.whole(
        "attention.key_length", metadata.whole("embedding_length") // max(heads, 1)
    )
    metadata.require("attention.value_length", width, None)
    return width


def rotary_part(metadata: Metadata) -> float | None:
    """The part of a head that rotary positions turn; None where the file does not say."""
    width = max(head_width(metadata), 1)
    if not metadata.pick(it="rope.dimension_count"):
        return None
    rotary_width = metadata.whole("rope.dimension_count")
    part = rotary_width / width
    is_exact = int(width * part) == rotary_width  # not where 49 · (1 / 49) < 1
    return part if is_exact else math.nextafter(part, 2)


def rotary(
    metadata: Metadata, *, part: str = "partial_rotary_factor", theta: str = "rope_theta"
) -> Values:
    """Rotary positions and their scaling; `part` and `theta` are the family's names of values."""
    values = metadata.pick(head_dim="attention.key_length", **{theta: "rope.freq_base"})
    if (share := rotary_part(metadata)) is not None:
        values[part] = share
    metadata.require("rope.scale_linear", None, 1.0)
    scaling = metadata.pick(
        rope_type="rope.scaling.type",
        factor="rope.scaling.factor",
        original_max_position_embeddings="rope.scaling.original_context_length",
        attention_factor="rope.scaling.yarn_attn_factor",
        beta_fast="rope.scaling.yarn_beta_fast",
        beta_slow="rope.scaling.yarn_beta_slow",
    )
    if metadata.has("rope_factors_long.weight"):
        scaling["rope_type"] = "longrope"
    if scaling.get("rope_type", "none") != "none":
        metadata.require("rope.scaling.yarn_log_multiplier", None, 0.0)
        metadata.require("rope.scaling.attn_factor", None, 1.0)
        return values | {"rope_scaling": scaling}
    if metadata.has(ROPE_FACTORS):
        return values | {"rope_scaling": llama3(metadata)}
    return values


def llama3(metadata: Metadata) -> Values:
    """Llama 3's scaling, recognized by its frequencies; ValueError for another one."""
    factors = metadata.few(ROPE_FACTORS)
    theta, largest = metadata.number("rope.freq_base"), max(factors, default=0)
    low, high, length = LLAMA3.values()
    for i, factor in enumerate(factors):
        waves = length * theta ** (-i / len(factors)) / (2 * math.pi) if theta > 0 else 0
        share = min(max((waves - low) / (high - low), 0), 1)
        if not math.isclose(factor * ((1 - share) / largest + share), 1, rel_tol=1e-4):
            raise ValueError(f"{ROPE_FACTORS} holds a scaling that is not known.")
    return LLAMA3 | {"rope_type": "llama3", "factor": largest}


def llama(metadata: Metadata) -> Values:
    """Llama, and Mistral where there is a window."""
    window = metadata.pick(sliding_window="attention.sliding_window")
    return usual(
        metadata,
        "mistral" if window else "llama",
        rms_norm_eps=rms_eps(metadata),
        attention_bias=metadata.has("blk.0.attn_q.bias"),
        mlp_bias=metadata.has("blk.0.ffn_up.bias"),
        **rotary(metadata),
        **window,
    )


def qwen(metadata: Metadata, *, family: str) -> Values:
    """Qwen2 and Qwen3, whose windows no file has."""
    metadata.require("attention.sliding_window", None, 0)
    bias = metadata.has("blk.0.attn_q.bias")
    return usual(
        metadata, family, rms_norm_eps=rms_eps(metadata), attention_bias=bias, **rotary(metadata)
    )


def gemma(metadata: Metadata) -> Values:
    bias = metadata.has("blk.0.attn_q.bias")
    return usual(
        metadata, "gemma", rms_norm_eps=rms_eps(metadata), attention_bias=bias, **rotary(metadata)
    )


def gemma2(metadata: Metadata) -> Values:
    """Every second layer has a window."""
    metadata.require("attention.sliding_window_pattern", None, 2)
    values = usual(metadata, "gemma2", rms_norm_eps=rms_eps(metadata), **rotary(metadata))
    width = head_width(metadata)
    if values["num_hidden_layers"] == LAYERS_OF_27B:
        width = values["hidden_size"] // max(values["num_attention_heads"], 1)
    return values | {
        "query_pre_attn_scalar": width,
        **metadata.pick(
            "attn_logit_softcapping",
            "final_logit_softcapping",
            sliding_window="attention.sliding_window",
        ),
    }


def phi3(metadata: Metadata) -> Values:
    """A window of 0 stands for none."""
    window = metadata.whole("attention.sliding_window", 0) or None
    return usual(
        metadata, "phi3", rms_norm_eps=rms_eps(metadata), sliding_window=window, **rotary(metadata)
    )


def phi2(metadata: Metadata) -> Values:
    return usual(metadata, "phi", layer_norm_eps=layer_eps(metadata), **rotary(metadata))


def gpt2(metadata: Metadata, *, family: str = "gpt2") -> Values:
    values = usual(metadata, family, layer_norm_epsilon=layer_eps(metadata))
    return values | {"n_inner": values["intermediate_size"]}


def starcoder(metadata: Metadata) -> Values:
    """Its heads share one key and one value."""
    metadata.require("attention.head_count_kv", 1)
    return gpt2(metadata, family="gpt_bigcode") | {"multi_query": True}


def starcoder2(metadata: Metadata) -> Values:
    bias = metadata.has("blk.0.attn_q.bias")
    window = metadata.whole("attention.sliding_window", 0) or None
    more = {"norm_epsilon": layer_eps(metadata), "sliding_window": window} | rotary(metadata)
    return usual(metadata, "starcoder2", use_bias=bias, **more)


def stablelm(metadata: Metadata) -> Values:
    """Attention and feed-forward are parallel where they share a norm, whatever a value says."""
    return usual(
        metadata,
        "stablelm",
        layer_norm_eps=layer_eps(metadata),
        use_qkv_bias=metadata.has("blk.0.attn_q.bias"),
        qk_layernorm=metadata.has("blk.0.attn_q_norm.weight"),
        use_parallel_residual=not metadata.has("blk.0.ffn_norm.weight"),
        **rotary(metadata),
    )


def gpt_neox(metadata: Metadata) -> Values:
    return usual(
        metadata,
        "gpt_neox",
        layer_norm_eps=layer_eps(metadata),
        attention_bias=metadata.has("blk.0.attn_qkv.bias"),
        **metadata.pick("use_parallel_residual"),
        **rotary(metadata, part="rotary_pct", theta="rotary_emb_base"),
    )


def gptj(metadata: Metadata) -> Values:
    return gpt2(metadata, family="gptj") | {"rotary_dim": metadata.whole("rope.dimension_count")}


def bloom(metadata: Metadata) -> Values:
    values = usual(metadata, "bloom", layer_norm_epsilon=layer_eps(metadata))
    if values["intermediate_size"] != 4 * values["hidden_size"]:
        raise ValueError("bloom.feed_forward_length must be four times the embedding's.")
    return values | {"seq_length": values["max_position_embeddings"]}


def bert(metadata: Metadata) -> Values:
    """BERT, RoBERTa without the unused rows of its positions, and DistilBERT without segments.

    No file has what makes words or classes of the last layer.
    """
    metadata.require("attention.causal", None, False)
    values = usual(metadata, "bert", layer_norm_eps=layer_eps(metadata)) | {
        "architectures": ["BertModel"],
        "max_position_embeddings": metadata.rows("position_embd.weight"),
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if metadata.has("token_types.weight"):
        return values | {"type_vocab_size": metadata.rows("token_types.weight")}
    hidden = values["intermediate_size"]
    return values | {
        "model_type": "distilbert",
        "architectures": ["DistilBertModel"],
        "hidden_dim": hidden,
    }


def t5(metadata: Metadata, *, whole: bool = True) -> Values:
    """T5, v1.1 and mT5, which differ in what is tied and gated."""
    gated = metadata.has("enc.blk.0.ffn_gate.weight")
    values = usual(
        metadata,
        "t5",
        architectures=["T5ForConditionalGeneration" if whole else "T5EncoderModel"],
        is_encoder_decoder=whole,
        d_kv=metadata.whole("attention.key_length"),
        relative_attention_num_buckets=metadata.whole("attention.relative_buckets_count"),
        layer_norm_epsilon=rms_eps(metadata),
        feed_forward_proj="gated-gelu" if gated else "relu",
        **metadata.pick("decoder_start_token_id"),
    )
    decoder = metadata.whole("decoder_block_count", values["num_hidden_layers"])
    return values | {
        "d_ff": values["intermediate_size"],
        "num_layers": values["num_hidden_layers"],
        "num_decoder_layers": decoder,
        "n_positions": values["max_position_embeddings"],
    }


ARCHITECTURES = {
    "llama": Architecture(llama, partial(gguf_names, interleaved=True)),
    "qwen2": Architecture(partial(qwen, family="qwen2")),
    "qwen3": Architecture(partial(qwen, family="qwen3")),
    "gemma": Architecture(gemma),
    "gemma2": Architecture(gemma2),
    "phi3": Architecture(phi3, lambda config: gate_in_up(gguf_names(config))),
    "phi2": Architecture(phi2),
    "gpt2": Architecture(gpt2),
    "gptj": Architecture(gptj),
    "gptneox": Architecture(gpt_neox),
    "starcoder": Architecture(starcoder),
    "starcoder2": Architecture(starcoder2),
    "stablelm": Architecture(stablelm),
    "bloom": Architecture(bloom),
    "bert": Architecture(bert),
    "t5": Architecture(t5, two_stack_names),
    "t5encoder": Architecture(partial(t5, whole=False), two_stack_names),
}
"""By `general.architecture`."""
