"""BLOOM. Source: BLOOM (BigScience Workshop 2022), section 3.2."""

from typing import Any

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.layout import HeadByHead
from models.families.published import Published
from models.families.writing import classes, common

BLOOM_DEFAULTS = {"bos_token_id": 1, "eos_token_id": 2}
BLOOM_MAX_LEN = 2048
"""The length of its training texts. ALiBi has no limit, so a config may name a larger one."""


def bloom_config(published: Published) -> TransformerConfig:
    published = published.over(BLOOM_DEFAULTS)
    published.require("apply_residual_connection_post_layernorm", False)
    width = published.int("n_embed" if "n_embed" in published else "hidden_size", 64)
    return TransformerConfig(
        kind="decoder",
        head=published.head("language-model"),
        vocab_size=published.int("vocab_size", 250880),
        d_model=width,
        n_layers=published.int("n_layer", 2),
        n_heads=published.int("n_head", 8),
        d_ff=4 * width,
        max_len=published.optional_int("seq_length") or BLOOM_MAX_LEN,
        positions="alibi",
        scale_embedding=False,
        embedding_norm=True,
        norm_eps=published.number("layer_norm_epsilon", 1e-5),
        activation="gelu-tanh",
        head_bias=False,
        tie_embeddings=published.flag("tie_word_embeddings", True),
        **published.labels(),
        pooling="last",
        classifier_bias=False,
        **published.tokens(),
    )


def bloom_published(config: TransformerConfig) -> dict[str, Any]:
    return common(config, classes("Bloom")) | {
        "hidden_size": config.d_model,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "layer_norm_epsilon": config.norm_eps,
        "seq_length": config.max_len,
    }


def bloom_names(config: TransformerConfig) -> Names:
    block, layer = "decoder.blocks.{i}.", "h.{i}."
    qkv = tuple(f"{block}self_attn.{name}_proj" for name in "qkv")
    return {
        "word_embeddings.weight": "decoder.embedding.weight",
        "word_embeddings_layernorm": "decoder.embedding_norm",
        layer + "input_layernorm": block + "self_residual.norm",
        layer + "self_attention.query_key_value": HeadByHead(qkv, config.n_heads),
        layer + "self_attention.dense": block + "self_attn.o_proj",
        layer + "post_attention_layernorm": block + "mlp_residual.norm",
        layer + "mlp.dense_h_to_4h": block + "mlp.up_proj",
        layer + "mlp.dense_4h_to_h": block + "mlp.down_proj",
        "ln_f": "decoder.norm",
        "lm_head.weight": "head.weight",
        "score.weight": "head.out.weight",
    }


BLOOM = Family(
    ("bloom",),
    bloom_config,
    bloom_names,
    prefix="transformer.",
    published=bloom_published,
    aliases={"num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
)
