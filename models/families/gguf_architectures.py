"""GGUF files as checkpoints of a published family: each architecture's metadata to its config.

Every table makes the config.json that the file was converted from, as far as it counts;
the family then reads it as its own. What a file cannot say, since llama.cpp has it in its
code, is the family's default. Source: llama.cpp's conversion scripts.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from models.config import TransformerConfig
from models.families import FAMILIES
from models.families.family import WAY_OUT, Family, Names
from models.families.gguf_metadata import ROPE_FACTORS, Metadata
from models.families.gguf_names import gate_in_up, gguf_names, two_stack_names
from models.loading.safe_files import shown

Values = dict[str, Any]
LAYERS_OF_27B = 46
"""Gemma 2 of this depth scales its scores in another way, which no value says."""
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
"""Of every Llama 3: a file has only what they make of the frequencies."""


@dataclass(frozen=True)
class Architecture:
    """How the files of one architecture are read: their config and the names of their tensors."""

    config: Callable[[Metadata], Values]
    names: Callable[[TransformerConfig], Names] = gguf_names


def described(
    values: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    numbers: Callable[[str], Tensor],
) -> tuple[Values, Family]:
    """The published config.json that a file stands for, and the family with the file's names.

    ValueError, in one sentence, when its architecture is none of ours or a value is missing.
    `numbers` reads a tensor; that of ROPE_FACTORS is the only one that is asked for.
    """
    read = Metadata(values, shapes, numbers)
    found = ARCHITECTURES.get(read.architecture)
    if found is None:
        raise ValueError(
            f"the architecture {shown(read.architecture)} is not supported; {WAY_OUT}."
        )
    read.require("expert_count", None, 0)
    read.require("attention.clamp_kqv", None, 0.0)
    config = found.config(read)
    family = replace(
        FAMILIES[config["model_type"]],
        names=found.names,
        prefix="",
        output="output.weight",
        apart=None,
        optional={},
        published=None,
    )
    return config, family


def usual(read: Metadata, family: str, **more: Any) -> Values:
    """What almost every architecture says, by the usual names, and what is only its own."""
    heads = read.whole("attention.head_count")
    return {
        "model_type": family,
        "vocab_size": read.rows("token_embd.weight"),
        "hidden_size": read.whole("embedding_length"),
        "num_hidden_layers": read.whole("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": read.whole("attention.head_count_kv", heads),
        "intermediate_size": read.whole("feed_forward_length"),
        "max_position_embeddings": read.whole("context_length"),
        "tie_word_embeddings": not read.has("output.weight"),
        "bos_token_id": read.token("bos"),
        "eos_token_id": read.token("eos"),
        "pad_token_id": read.token("padding"),
        **more,
    }


def rms_eps(read: Metadata) -> float:
    return read.number("attention.layer_norm_rms_epsilon")


def layer_eps(read: Metadata) -> float:
    return read.number("attention.layer_norm_epsilon")


def head_width(read: Metadata) -> int:
    heads = read.whole("attention.head_count")
    width = read.whole("attention.key_length", read.whole("embedding_length") // max(heads, 1))
    read.require("attention.value_length", width, None)
    return width


def turned(read: Metadata) -> float | None:
    """The part of a head that rotary positions turn; None where the file does not say."""
    width = max(head_width(read), 1)
    if not read.given(it="rope.dimension_count"):
        return None
    rotary_width = read.whole("rope.dimension_count")
    part = rotary_width / width
    return (
        part if int(width * part) == rotary_width else math.nextafter(part, 2)
    )  # 49 · (1 / 49) < 1


def rotary(
    read: Metadata, *, part: str = "partial_rotary_factor", theta: str = "rope_theta"
) -> Values:
    """Rotary positions and their scaling; `part` and `theta` are the family's names of values."""
    values = read.given(head_dim="attention.key_length", **{theta: "rope.freq_base"})
    if (found := turned(read)) is not None:
        values[part] = found
    read.require("rope.scale_linear", None, 1.0)
    scaling = read.given(
        rope_type="rope.scaling.type",
        factor="rope.scaling.factor",
        original_max_position_embeddings="rope.scaling.original_context_length",
        attention_factor="rope.scaling.yarn_attn_factor",
        beta_fast="rope.scaling.yarn_beta_fast",
        beta_slow="rope.scaling.yarn_beta_slow",
    )
    if read.has("rope_factors_long.weight"):
        scaling["rope_type"] = "longrope"
    if scaling.get("rope_type", "none") != "none":
        read.require("rope.scaling.yarn_log_multiplier", None, 0.0)
        read.require("rope.scaling.attn_factor", None, 1.0)
        return values | {"rope_scaling": scaling}
    if read.has(ROPE_FACTORS):
        return values | {"rope_scaling": llama3(read)}
    return values


def llama3(read: Metadata) -> Values:
    """Llama 3's scaling, told from the frequencies that it leaves; ValueError if it is another."""
    factors = read.few(ROPE_FACTORS)
    theta, largest = read.number("rope.freq_base"), max(factors, default=0)
    low, high, length = LLAMA3.values()
    for i, factor in enumerate(factors):
        waves = length * theta ** (-i / len(factors)) / (2 * math.pi) if theta > 0 else 0
        share = min(max((waves - low) / (high - low), 0), 1)
        if not math.isclose(factor * ((1 - share) / largest + share), 1, rel_tol=1e-4):
            raise ValueError(f"{ROPE_FACTORS} holds a scaling that is not known.")
    return LLAMA3 | {"rope_type": "llama3", "factor": largest}


def llama(read: Metadata) -> Values:
    """Llama, and Mistral where there is a window."""
    window = read.given(sliding_window="attention.sliding_window")
    return usual(
        read,
        "mistral" if window else "llama",
        rms_norm_eps=rms_eps(read),
        attention_bias=read.has("blk.0.attn_q.bias"),
        mlp_bias=read.has("blk.0.ffn_up.bias"),
        **rotary(read),
        **window,
    )


def qwen(read: Metadata, *, family: str) -> Values:
    """Qwen2 and Qwen3, whose windows no file has."""
    read.require("attention.sliding_window", None, 0)
    bias = read.has("blk.0.attn_q.bias")
    return usual(read, family, rms_norm_eps=rms_eps(read), attention_bias=bias, **rotary(read))


def gemma(read: Metadata) -> Values:
    bias = read.has("blk.0.attn_q.bias")
    return usual(read, "gemma", rms_norm_eps=rms_eps(read), attention_bias=bias, **rotary(read))


def gemma2(read: Metadata) -> Values:
    """A window is in every second layer."""
    read.require("attention.sliding_window_pattern", None, 2)
    values = usual(read, "gemma2", rms_norm_eps=rms_eps(read), **rotary(read))
    width = head_width(read)
    if values["num_hidden_layers"] == LAYERS_OF_27B:
        width = values["hidden_size"] // max(values["num_attention_heads"], 1)
    return values | {
        "query_pre_attn_scalar": width,
        **read.given(
            "attn_logit_softcapping",
            "final_logit_softcapping",
            sliding_window="attention.sliding_window",
        ),
    }


def phi3(read: Metadata) -> Values:
    """A window of 0 is none."""
    window = read.whole("attention.sliding_window", 0) or None
    return usual(read, "phi3", rms_norm_eps=rms_eps(read), sliding_window=window, **rotary(read))


def phi2(read: Metadata) -> Values:
    return usual(read, "phi", layer_norm_eps=layer_eps(read), **rotary(read))


def gpt2(read: Metadata, *, family: str = "gpt2") -> Values:
    values = usual(read, family, layer_norm_epsilon=layer_eps(read))
    return values | {"n_inner": values["intermediate_size"]}


def starcoder(read: Metadata) -> Values:
    """Its heads share one key and one value."""
    read.require("attention.head_count_kv", 1)
    return gpt2(read, family="gpt_bigcode") | {"multi_query": True}


def starcoder2(read: Metadata) -> Values:
    bias = read.has("blk.0.attn_q.bias")
    window = read.whole("attention.sliding_window", 0) or None
    more = {"norm_epsilon": layer_eps(read), "sliding_window": window} | rotary(read)
    return usual(read, "starcoder2", use_bias=bias, **more)


def stablelm(read: Metadata) -> Values:
    """Attention and feed-forward are parallel where they share a norm, whatever a value says."""
    return usual(
        read,
        "stablelm",
        layer_norm_eps=layer_eps(read),
        use_qkv_bias=read.has("blk.0.attn_q.bias"),
        qk_layernorm=read.has("blk.0.attn_q_norm.weight"),
        use_parallel_residual=not read.has("blk.0.ffn_norm.weight"),
        **rotary(read),
    )


def gpt_neox(read: Metadata) -> Values:
    return usual(
        read,
        "gpt_neox",
        layer_norm_eps=layer_eps(read),
        attention_bias=read.has("blk.0.attn_qkv.bias"),
        **read.given("use_parallel_residual"),
        **rotary(read, part="rotary_pct", theta="rotary_emb_base"),
    )


def gptj(read: Metadata) -> Values:
    return gpt2(read, family="gptj") | {"rotary_dim": read.whole("rope.dimension_count")}


def bloom(read: Metadata) -> Values:
    values = usual(read, "bloom", layer_norm_epsilon=layer_eps(read))
    if values["intermediate_size"] != 4 * values["hidden_size"]:
        raise ValueError("bloom.feed_forward_length must be four times the embedding's.")
    return values | {"seq_length": values["max_position_embeddings"]}


def bert(read: Metadata) -> Values:
    """BERT, RoBERTa without the unused rows of its positions, and DistilBERT without segments.

    No file has what makes words or classes of the last layer.
    """
    read.require("attention.causal", None, False)
    values = usual(read, "bert", layer_norm_eps=layer_eps(read)) | {
        "architectures": ["BertModel"],
        "max_position_embeddings": read.rows("position_embd.weight"),
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if read.has("token_types.weight"):
        return values | {"type_vocab_size": read.rows("token_types.weight")}
    hidden = values["intermediate_size"]
    return values | {
        "model_type": "distilbert",
        "architectures": ["DistilBertModel"],
        "hidden_dim": hidden,
    }


def t5(read: Metadata, *, whole: bool = True) -> Values:
    """T5, v1.1 and mT5, which differ in what is tied and gated."""
    gated = read.has("enc.blk.0.ffn_gate.weight")
    values = usual(
        read,
        "t5",
        architectures=["T5ForConditionalGeneration" if whole else "T5EncoderModel"],
        is_encoder_decoder=whole,
        d_kv=read.whole("attention.key_length"),
        relative_attention_num_buckets=read.whole("attention.relative_buckets_count"),
        layer_norm_epsilon=rms_eps(read),
        feed_forward_proj="gated-gelu" if gated else "relu",
        **read.given("decoder_start_token_id"),
    )
    decoder = read.whole("decoder_block_count", values["num_hidden_layers"])
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
