"""GPT-NeoX and Pythia.

Source: GPT-NeoX-20B (Black et al. 2022), section 2.
"""

from typing import Any

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.layout import HeadByHead
from models.families.published import Published
from models.families.rope import rope
from models.families.writing import WRITTEN_ACTIVATIONS, classes, common, rotation

GPT_NEOX_DEFAULTS = {"bos_token_id": 0, "eos_token_id": 2}


def gpt_neox_config(published: Published) -> TransformerConfig:
    published = published.over(GPT_NEOX_DEFAULTS)
    width, heads = published.int("hidden_size", 6144), published.int("num_attention_heads", 64)
    bias = published.flag("attention_bias", True)
    part, theta = "rotary_pct", "rotary_emb_base"
    head = width // max(heads, 1)
    published.require("head_dim", None, head)
    return TransformerConfig(
        kind="decoder",
        head=published.head("language-model"),
        vocab_size=published.int("vocab_size", 50432),
        d_model=width,
        n_layers=published.int("num_hidden_layers", 44),
        n_heads=heads,
        d_ff=published.int("intermediate_size", 24576),
        max_len=published.int("max_position_embeddings", 2048),
        **rope(published, width=head, part=0.25, part_name=part, theta_name=theta),
        scale_embedding=False,
        norm_eps=published.number("layer_norm_eps", 1e-5),
        parallel=published.flag("use_parallel_residual", True),
        activation=published.activation("hidden_act", "gelu"),
        qkv_bias=bias,
        out_bias=bias,
        head_bias=False,
        tie_embeddings=published.flag("tie_word_embeddings", False),
        **published.labels(),
        pooling="last",
        classifier_bias=False,
        **published.tokens(),
    )


def gpt_neox_published(config: TransformerConfig) -> dict[str, Any]:
    return common(config, classes("GPTNeoX")) | {
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.d_ff,
        "max_position_embeddings": config.max_len,
        "rotary_pct": config.rotary_width / config.head_width,
        "rotary_emb_base": config.rope_theta,
        "rope_scaling": rotation(config)["rope_scaling"],
        "layer_norm_eps": config.norm_eps,
        "use_parallel_residual": config.parallel,
        "hidden_act": WRITTEN_ACTIVATIONS[config.activation],
        "attention_bias": config.qkv_bias,
    }


def gpt_neox_names(config: TransformerConfig) -> Names:
    block, layer = "decoder.blocks.{i}.", "layers.{i}."
    qkv = tuple(f"{block}self_attn.{name}_proj" for name in "qkv")
    return {
        "embed_in.weight": "decoder.embedding.weight",
        layer + "input_layernorm": block + "self_residual.norm",
        layer + "attention.query_key_value": HeadByHead(qkv, config.n_heads),
        layer + "attention.dense": block + "self_attn.o_proj",
        layer + "post_attention_layernorm": block + "mlp_residual.norm",
        layer + "mlp.dense_h_to_4h": block + "mlp.up_proj",
        layer + "mlp.dense_4h_to_h": block + "mlp.down_proj",
        "final_layer_norm": "decoder.norm",
        "embed_out.weight": "head.weight",
        "score.weight": "head.out.weight",
    }


GPT_NEOX = Family(
    ("gpt_neox",),
    gpt_neox_config,
    gpt_neox_names,
    prefix="gpt_neox.",
    output="embed_out.weight",
    published=gpt_neox_published,
)
