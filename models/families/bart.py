"""BART, PLBART and mBART.

Sources: BART (Lewis et al. 2019); Unified Pre-training for Program Understanding and
Generation (Ahmad et al. 2021); Multilingual Denoising Pre-training for Neural Machine
Translation (Liu et al. 2020), which is pre-norm.
"""

from functools import partial

from models.config import TransformerConfig
from models.families.family import Family, Names
from models.families.layout import SingleRow
from models.families.published import Published
from models.loading.safe_files import quoted

BART_ALIASES = {
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
    "num_attention_heads": "encoder_attention_heads",
}
UNUSED_ROWS = 2
"""Rows of the table of positions that no token uses."""
APART = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
PLBART_DEFAULTS = {
    "vocab_size": 50005,
    "d_model": 768,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_attention_heads": 12,
    "decoder_attention_heads": 12,
    "encoder_ffn_dim": 3072,
    "decoder_ffn_dim": 3072,
    "scale_embedding": True,
}
"""What a config of PLBART leaves out."""


def bart_config(
    published: Published, *, pre: bool = False, start: int | None = None
) -> TransformerConfig:
    base = two_stacks(published, pre=pre, embedding_norm=True, vocab_size=50265)
    return base.replace(
        position_offset=UNUSED_ROWS, **published.tokens(pad=1, bos=0, eos=2, start=start)
    )


def two_stacks(
    published: Published,
    *,
    pre: bool = False,
    embedding_norm: bool = False,
    static: bool = False,
    vocab_size: int,
) -> TransformerConfig:
    """What BART and those built like it have in common.

    `static` positions are sinusoids. Older configs spell out what the family fixes.
    """
    published.require("normalize_before", pre)
    published.require("add_final_layer_norm", pre)
    published.require("normalize_embedding", embedding_norm)
    published.require("static_position_embeddings", static)
    published.require("add_bias_logits", False)
    published.require("is_encoder_decoder", True)
    published.require("is_decoder", False)
    if (published.architecture() or "").endswith("ForCausalLM"):
        raise ValueError(f"{quoted(published.architecture())}, a decoder alone, is not supported.")
    width = published.int("decoder_ffn_dim", 4096)
    encoder_width = published.int("encoder_ffn_dim", 4096)
    return TransformerConfig(
        kind="encoder-decoder",
        head=published.head("language-model", "classifier", "masked-language-model"),
        vocab_size=published.int("vocab_size", vocab_size),
        d_model=published.int("d_model", 1024),
        n_layers=published.int("decoder_layers", 12),
        n_encoder_layers=published.int("encoder_layers", 12),
        n_heads=same(published, "encoder_attention_heads", "decoder_attention_heads", 16),
        d_ff=width,
        d_ff_encoder=None if encoder_width == width else encoder_width,
        max_len=published.int("max_position_embeddings", 1024),
        positions="sinusoidal" if static else "learned",
        pairs="halves" if static else None,
        count_padding=True,
        scale_embedding=published.flag("scale_embedding", False),
        embedding_norm=embedding_norm,
        norm_position="pre" if pre else "post",
        final_norm=pre,
        activation=published.activation("activation_function", "gelu"),
        share_embeddings=True,
        tie_embeddings=published.flag("tie_word_embeddings", True),
    )


def same(published: Published, first: str, second: str, default: int) -> int:
    """A size that must be the same in both stacks."""
    size, second_size = published.int(first, default), published.int(second, default)
    if size != second_size:
        raise ValueError(
            f"{first} {size} and {second} {second_size} differ, which is not supported."
        )
    return size


def bart_names(config: TransformerConfig) -> Names:
    shared = config.share_embeddings
    table: dict[str, str | SingleRow] = (
        {"shared.weight": "encoder.embedding.weight"} if shared else {}
    )
    for stack in config.stacks:
        block = stack + ".blocks.{i}."
        layer = stack + ".layers.{i}."
        owner = "encoder" if shared else stack
        table |= {
            stack + ".embed_tokens.weight": owner + ".embedding.weight",
            stack + ".embed_positions.weight": stack + ".positions.table.weight",
            stack + ".layernorm_embedding": stack + ".embedding_norm",
            layer + "self_attn.q_proj": block + "self_attn.q_proj",
            layer + "self_attn.k_proj": block + "self_attn.k_proj",
            layer + "self_attn.v_proj": block + "self_attn.v_proj",
            layer + "self_attn.out_proj": block + "self_attn.o_proj",
            layer + "self_attn_layer_norm": block + "self_residual.norm",
            layer + "encoder_attn.q_proj": block + "cross_attn.q_proj",
            layer + "encoder_attn.k_proj": block + "cross_attn.k_proj",
            layer + "encoder_attn.v_proj": block + "cross_attn.v_proj",
            layer + "encoder_attn.out_proj": block + "cross_attn.o_proj",
            layer + "encoder_attn_layer_norm": block + "cross_residual.norm",
            layer + "fc1": block + "mlp.up_proj",
            layer + "fc2": block + "mlp.down_proj",
            layer + "final_layer_norm": block + "mlp_residual.norm",
            stack + ".layer_norm": stack + ".norm",
        }
    return table | {"lm_head.weight": "head.weight", "final_logits_bias": SingleRow(("head.bias",))}


family = partial(
    Family,
    names=bart_names,
    prefix="model.",
    apart=APART,
    optional={"final_logits_bias": "head_bias"},
    aliases=BART_ALIASES,
)
BART = family(("bart",), partial(bart_config, start=2))
MBART = family(("mbart",), partial(bart_config, pre=True))
PLBART = family(("plbart",), lambda published: bart_config(published.over(PLBART_DEFAULTS)))
