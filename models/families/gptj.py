"""GPT-J. Source: GPT-J-6B (Wang and Komatsuzaki 2021)."""

from typing import Any

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.gpt2 import GPT2_ALIASES, inner_width
from models.families.published import Published
from models.families.writing import WRITTEN_ACTIVATIONS, classes, common

GPTJ_DEFAULTS = {"bos_token_id": 50256, "eos_token_id": 50256}


def gptj_config(published: Published) -> TransformerConfig:
    published = published.over(GPTJ_DEFAULTS)
    width = published.int("n_embd", 4096)
    return TransformerConfig(
        kind="decoder",
        head=published.head("language-model"),
        vocab_size=published.int("vocab_size", 50400),
        d_model=width,
        n_layers=published.int("n_layer", 28),
        n_heads=published.int("n_head", 16),
        d_ff=inner_width(published, width),
        max_len=published.int("n_positions", 2048),
        positions="rotary",
        pairs="adjacent",
        d_rotary=published.int("rotary_dim", 64),
        scale_embedding=False,
        norm_eps=published.number("layer_norm_epsilon", 1e-5),
        parallel=True,
        shared_norm=True,
        activation=published.activation("activation_function", "gelu_new"),
        qkv_bias=False,
        out_bias=False,
        tie_embeddings=published.flag("tie_word_embeddings", False),
        **published.labels(),
        pooling="last",
        classifier_bias=False,
        **published.tokens(),
    )


def gptj_published(config: TransformerConfig) -> dict[str, Any]:
    return common(config, classes("GPTJ")) | {
        "n_embd": config.d_model,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "n_inner": config.d_ff,
        "n_positions": config.max_len,
        "rotary_dim": config.rotary_width,
        "activation_function": WRITTEN_ACTIVATIONS[config.activation],
        "layer_norm_epsilon": config.norm_eps,
    }


def gptj_names(config: TransformerConfig) -> Names:
    block = "decoder.blocks.{i}."
    return {
        "wte.weight": "decoder.embedding.weight",
        "h.{i}.ln_1": block + "self_residual.norm",
        "h.{i}.attn.q_proj": block + "self_attn.q_proj",
        "h.{i}.attn.k_proj": block + "self_attn.k_proj",
        "h.{i}.attn.v_proj": block + "self_attn.v_proj",
        "h.{i}.attn.out_proj": block + "self_attn.o_proj",
        "h.{i}.mlp.fc_in": block + "mlp.up_proj",
        "h.{i}.mlp.fc_out": block + "mlp.down_proj",
        "ln_f": "decoder.norm",
        "lm_head": "head",
        "score.weight": "head.out.weight",
    }


GPTJ = Family(
    ("gptj",),
    gptj_config,
    gptj_names,
    prefix="transformer.",
    published=gptj_published,
    aliases=GPT2_ALIASES,
)
