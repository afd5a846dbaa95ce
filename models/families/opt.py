"""OPT. Source: OPT (Zhang et al. 2022), section 2.1."""

from typing import Any

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.published import Published
from models.families.writing import WRITTEN_ACTIVATIONS, classes, common

OPT_DEFAULTS = {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 2}
FIRST_ROW = 2
"""Rows of its table of positions that no token has."""


def opt_config(published: Published) -> TransformerConfig:
    published = published.over(OPT_DEFAULTS)
    width = published.int("hidden_size", 768)
    published.require("word_embed_proj_dim", width, None)
    published.require("layer_norm_elementwise_affine", True)
    bias = published.flag("enable_bias", True)
    before = published.flag("do_layer_norm_before", True)
    return TransformerConfig(
        kind="decoder",
        head=published.head("language-model"),
        vocab_size=published.int("vocab_size", 50272),
        d_model=width,
        n_layers=published.int("num_hidden_layers", 12),
        n_heads=published.int("num_attention_heads", 12),
        d_ff=published.int("ffn_dim", 3072),
        max_len=published.int("max_position_embeddings", 2048),
        positions="learned",
        position_offset=FIRST_ROW,
        scale_embedding=False,
        norm_position="pre" if before else "post",
        final_norm=before and not published.flag("_remove_final_layer_norm", False),
        activation=published.activation("activation_function", "relu"),
        qkv_bias=bias,
        bias=bias,
        head_bias=False,
        tie_embeddings=published.flag("tie_word_embeddings", True),
        **published.labels(),
        pooling="last",
        classifier_bias=False,
        **published.tokens(),
    )


def opt_published(config: TransformerConfig) -> dict[str, Any]:
    return common(config, classes("OPT")) | {
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "ffn_dim": config.d_ff,
        "max_position_embeddings": config.max_len,
        "word_embed_proj_dim": config.d_model,
        "do_layer_norm_before": config.norm_position == "pre",
        "_remove_final_layer_norm": not config.final_norm,
        "activation_function": WRITTEN_ACTIVATIONS[config.activation],
        "enable_bias": config.qkv_bias,
    }


def opt_names(config: TransformerConfig) -> Names:
    block, layer = "decoder.blocks.{i}.", "decoder.layers.{i}."
    return {
        "decoder.embed_tokens.weight": "decoder.embedding.weight",
        "decoder.embed_positions.weight": "decoder.positions.table.weight",
        layer + "self_attn_layer_norm": block + "self_residual.norm",
        layer + "self_attn.q_proj": block + "self_attn.q_proj",
        layer + "self_attn.k_proj": block + "self_attn.k_proj",
        layer + "self_attn.v_proj": block + "self_attn.v_proj",
        layer + "self_attn.out_proj": block + "self_attn.o_proj",
        layer + "final_layer_norm": block + "mlp_residual.norm",
        layer + "fc1": block + "mlp.up_proj",
        layer + "fc2": block + "mlp.down_proj",
        "decoder.final_layer_norm": "decoder.norm",
        "lm_head.weight": "head.weight",
        "score.weight": "head.out.weight",
    }


OPT = Family(("opt",), opt_config, opt_names, prefix="model.", published=opt_published)
