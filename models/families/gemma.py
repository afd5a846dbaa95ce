"""Gemma and Gemma 2.

Sources: Gemma (Gemma Team 2024), Gemma 2 (Gemma Team 2024), section 2.
"""

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.layout import MinusOne
from models.families.llama import llama_config, llama_names
from models.families.published import Published
from models.families.windows import layer_windows

GEMMA_DEFAULTS = {
    "vocab_size": 256000,
    "hidden_size": 3072,
    "intermediate_size": 24576,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "head_dim": 256,
    "hidden_act": "gelu_pytorch_tanh",
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}
GEMMA2_DEFAULTS = GEMMA_DEFAULTS | {
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "hidden_activation": "gelu_pytorch_tanh",
    "sliding_window": 4096,
}


def gemma(published: Published) -> TransformerConfig:
    """Its oldest files say gelu and mean the tanh approximation."""
    published = published.over(GEMMA_DEFAULTS)
    published.require("use_bidirectional_attention", None, False)
    bias = published.flag("attention_bias", False)
    base = llama_config(published, qkv_bias=bias, out_bias=bias)
    activation = "gelu-tanh" if base.activation == "gelu" else base.activation
    return base.replace(scale_embedding=True, activation=activation)


def gemma2(published: Published) -> TransformerConfig:
    published = published.over(GEMMA2_DEFAULTS)
    published.require("use_bidirectional_attention", None, False)
    bias = published.flag("attention_bias", False)
    width = published.int("query_pre_attn_scalar", 256)
    if not 0 < width < 1e9:
        raise ValueError(f"query_pre_attn_scalar {width:g} is no width.")
    published.int("sliding_window")  # every second layer has it
    return llama_config(published, qkv_bias=bias, out_bias=bias).replace(
        scale_embedding=True,
        activation=published.activation("hidden_activation", "gelu_pytorch_tanh"),
        norm_position="sandwich",
        attention_scale=width**-0.5,
        attention_cap=published.optional_number("attn_logit_softcapping", 50.0),
        logit_cap=published.optional_number("final_logit_softcapping", 30.0),
        windows=layer_windows(published, every=2),
    )


def gemma_names(config: TransformerConfig) -> Names:
    """Llama's, with gains stored as their difference from one."""
    table = dict(llama_names(config))
    block = "decoder.blocks.{i}."
    gains = {
        "layers.{i}.input_layernorm": block + "self_residual.norm",
        "layers.{i}.post_attention_layernorm": block + "mlp_residual.norm",
        "norm": "decoder.norm",
    }
    if config.norm_position == "sandwich":
        gains |= {
            "layers.{i}.post_attention_layernorm": block + "self_residual.out_norm",
            "layers.{i}.pre_feedforward_layernorm": block + "mlp_residual.norm",
            "layers.{i}.post_feedforward_layernorm": block + "mlp_residual.out_norm",
        }
    return table | {name: MinusOne((ours,)) for name, ours in gains.items()}


GEMMA = Family(("gemma",), gemma, gemma_names, prefix="model.")
GEMMA2 = Family(("gemma2",), gemma2, gemma_names, prefix="model.")
