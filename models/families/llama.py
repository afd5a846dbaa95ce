"""Llama, Mistral, Qwen2 and Qwen3: one table, since they differ in a few switches.

Sources: LLaMA (Touvron et al. 2023), Mistral 7B (Jiang et al. 2023), Qwen2 Technical
Report (2024), Qwen3 Technical Report (2025).
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.published import Published
from models.families.rope import rope
from models.families.windows import FULL, SLIDING, layer_windows
from models.families.writing import WRITTEN_ACTIVATIONS, classes, common, rotation

LLAMA_DEFAULTS = {
    "vocab_size": 32000,
    "intermediate_size": 11008,
    "max_position_embeddings": 2048,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MISTRAL_DEFAULTS = LLAMA_DEFAULTS | {
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "num_key_value_heads": 8,
    "sliding_window": 4096,
}
QWEN_DEFAULTS = {
    "vocab_size": 151936,
    "intermediate_size": 22016,
    "max_position_embeddings": 32768,
    "num_key_value_heads": 32,
    "sliding_window": 4096,
}


def llama(published: Published) -> TransformerConfig:
    published = published.over(LLAMA_DEFAULTS)
    bias = published.flag("attention_bias", False)
    mlp_bias = published.flag("mlp_bias", False)
    return llama_config(published, qkv_bias=bias, out_bias=bias, mlp_bias=mlp_bias)


def mistral(published: Published) -> TransformerConfig:
    """Every layer has the window; files with `layer_types` are of a later model."""
    published = published.over(MISTRAL_DEFAULTS)
    published.require("layer_types", None)
    return llama_config(published, windows=layer_windows(published))


def qwen2(published: Published) -> TransformerConfig:
    published = published.over(QWEN_DEFAULTS)
    return llama_config(published, qkv_bias=True, windows=qwen_windows(published))


def qwen3(published: Published) -> TransformerConfig:
    published = published.over(QWEN_DEFAULTS | {"head_dim": 128})
    bias = published.flag("attention_bias", False)
    window = qwen_windows(published)
    return llama_config(published, qkv_bias=bias, out_bias=bias, qk_norm=True, windows=window)


def qwen_windows(published: Published) -> tuple[int, ...]:
    if not published.flag("use_sliding_window", False):
        published = Published({**published.values, "sliding_window": None})
    return layer_windows(published, first=published.int("max_window_layers", 28))


def llama_config(
    published: Published,
    *,
    qkv_bias: bool = False,
    out_bias: bool = False,
    mlp_bias: bool = False,
    rotation: Mapping[str, Any] | None = None,
    **switches: Any,
) -> TransformerConfig:
    """What all of them share; a family with other rotary settings gives its own `rotation`."""
    return TransformerConfig(
        kind="decoder",
        head=published.head("language-model"),
        vocab_size=published.int("vocab_size"),
        d_model=published.int("hidden_size", 4096),
        n_layers=published.int("num_hidden_layers", 32),
        n_heads=published.int("num_attention_heads", 32),
        n_kv_heads=published.optional_int("num_key_value_heads"),
        d_head=published.optional_int("head_dim"),
        d_ff=published.int("intermediate_size"),
        max_len=published.int("max_position_embeddings"),
        **(rope(published) if rotation is None else rotation),
        scale_embedding=False,
        norm="rms",
        norm_eps=published.number("rms_norm_eps", 1e-6),
        activation=published.activation("hidden_act", "silu"),
        gated=True,
        qkv_bias=qkv_bias,
        out_bias=out_bias,
        mlp_bias=mlp_bias,
        head_bias=False,
        tie_embeddings=published.flag("tie_word_embeddings", False),
        **published.labels(),
        pooling="last",
        classifier_bias=False,
        **switches,
        **published.tokens(),
    )


def llama_published(config: TransformerConfig, *, stem: str) -> dict[str, Any]:
    """A config of ours as theirs; each family ignores what only others know."""
    values = common(config, classes(stem)) | rotation(config)
    return values | {
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_width,
        "intermediate_size": config.d_ff,
        "max_position_embeddings": config.max_len,
        "rms_norm_eps": config.norm_eps,
        "hidden_act": WRITTEN_ACTIVATIONS[config.activation],
        "attention_bias": config.qkv_bias,
        "mlp_bias": config.has_mlp_bias,
        "sliding_window": max(config.windows, default=0) or None,
    }


def published_by_layer(config: TransformerConfig, *, stem: str) -> dict[str, Any]:
    kinds = [SLIDING if config.window(i) else FULL for i in range(config.n_layers)]
    more = {"use_sliding_window": SLIDING in kinds, "layer_types": kinds}
    return llama_published(config, stem=stem) | more


def llama_names(config: TransformerConfig) -> Names:
    block = "decoder.blocks.{i}."
    return {
        "embed_tokens.weight": "decoder.embedding.weight",
        "layers.{i}.input_layernorm": block + "self_residual.norm",
        "layers.{i}.self_attn.q_proj": block + "self_attn.q_proj",
        "layers.{i}.self_attn.k_proj": block + "self_attn.k_proj",
        "layers.{i}.self_attn.v_proj": block + "self_attn.v_proj",
        "layers.{i}.self_attn.o_proj": block + "self_attn.o_proj",
        "layers.{i}.self_attn.q_norm": block + "self_attn.q_norm",
        "layers.{i}.self_attn.k_norm": block + "self_attn.k_norm",
        "layers.{i}.post_attention_layernorm": block + "mlp_residual.norm",
        "layers.{i}.mlp.gate_proj": block + "mlp.gate_proj",
        "layers.{i}.mlp.up_proj": block + "mlp.up_proj",
        "layers.{i}.mlp.down_proj": block + "mlp.down_proj",
        "norm": "decoder.norm",
        "lm_head.weight": "head.weight",
        "score.weight": "head.out.weight",
    }


def llama_family(
    kind: str,
    stem: str,
    config: Callable[[Published], TransformerConfig],
    published: Callable[..., dict[str, Any]] = llama_published,
) -> Family:
    return Family(
        (kind,), config, llama_names, prefix="model.", published=partial(published, stem=stem)
    )


LLAMA = llama_family("llama", "Llama", llama)
MISTRAL = llama_family("mistral", "Mistral", mistral)
QWEN2 = llama_family("qwen2", "Qwen2", qwen2, published_by_layer)
QWEN3 = llama_family("qwen3", "Qwen3", qwen3, published_by_layer)
