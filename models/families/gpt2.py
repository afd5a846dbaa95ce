"""GPT-2. Source: Language Models are Unsupervised Multitask Learners (Radford et al. 2019)."""

from typing import Any

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.layout import Columns
from models.families.published import Published
from models.families.writing import WRITTEN_ACTIVATIONS, classes, common

GPT2_DEFAULTS = {"bos_token_id": 50256, "eos_token_id": 50256}
GPT2_ALIASES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
"""What newer versions call its sizes."""


def gpt2_config(published: Published) -> TransformerConfig:
    published = published.over(GPT2_DEFAULTS)
    published.require("scale_attn_weights", True)
    published.require("scale_attn_by_inverse_layer_idx", False)
    published.require("add_cross_attention", False)
    width = published.int("n_embd", 768)
    return TransformerConfig(
        kind="decoder",
        head=published.head("language-model"),
        vocab_size=published.int("vocab_size", 50257),
        d_model=width,
        n_layers=published.int("n_layer", 12),
        n_heads=published.int("n_head", 12),
        d_ff=inner_width(published, width),
        max_len=published.int("n_positions", 1024),
        positions="learned",
        scale_embedding=False,
        norm_eps=published.number("layer_norm_epsilon", 1e-5),
        activation=published.activation("activation_function", "gelu_new"),
        head_bias=False,
        tie_embeddings=published.flag("tie_word_embeddings", True),
        **published.labels(),
        pooling="last",
        classifier_bias=False,
        **published.tokens(),
    )


def inner_width(published: Published, width: int) -> int:
    """Of the feed-forward layers: four times the model's where the file names none."""
    named = published.optional_int("n_inner")
    return 4 * width if named is None else named


def gpt2_published(config: TransformerConfig) -> dict[str, Any]:
    return common(config, classes("GPT2", "LMHeadModel")) | {
        "n_embd": config.d_model,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "n_inner": config.d_ff,
        "n_positions": config.max_len,
        "activation_function": WRITTEN_ACTIVATIONS[config.activation],
        "layer_norm_epsilon": config.norm_eps,
    }


def gpt2_names(config: TransformerConfig) -> Names:
    block = "decoder.blocks.{i}."
    attention = block + "self_attn."
    qkv = tuple(attention + name for name in ("q_proj", "k_proj", "v_proj"))
    return {
        "wte.weight": "decoder.embedding.weight",
        "wpe.weight": "decoder.positions.table.weight",
        "h.{i}.ln_1": block + "self_residual.norm",
        "h.{i}.attn.c_attn": Columns(qkv),
        "h.{i}.attn.c_proj": Columns((attention + "o_proj",)),
        "h.{i}.ln_2": block + "mlp_residual.norm",
        "h.{i}.mlp.c_fc": Columns((block + "mlp.up_proj",)),
        "h.{i}.mlp.c_proj": Columns((block + "mlp.down_proj",)),
        "ln_f": "decoder.norm",
        "lm_head.weight": "head.weight",
        "score.weight": "head.out.weight",
    }


GPT2 = Family(
    ("gpt2",),
    gpt2_config,
    gpt2_names,
    prefix="transformer.",
    published=gpt2_published,
    aliases=GPT2_ALIASES,
)
