"""Every kind of model the core can build, small, as (name, config)."""

from dataclasses import fields

import pytest

from models.config import KINDS, NORM_POSITIONS, NORMS, POSITIONS, RopeScaling, TransformerConfig
from tests.grids import grid
from tests.tiny import config_of

NAMES = "kind, positions, norm, norm_position, kv_heads"
GRID = grid(NAMES, KINDS, POSITIONS, NORMS, NORM_POSITIONS, (3, 1))
PAIRS = list(zip(KINDS * 2, POSITIONS, strict=True))
SOME_OF_EACH = pytest.mark.parametrize(("kind", "positions"), PAIRS)
"""Every kind twice and every way to tell positions once."""

CHOICES = {
    each.name: each.metadata["options"]
    for each in fields(TransformerConfig)
    if "options" in each.metadata
}
"""The options of every field that holds a name."""

YARN = RopeScaling("yarn", factor=4.0, original_len=16, attention_factor=1.2)
ODDITIES = {
    "plain": config_of("decoder"),
    "encoder-decoder": config_of("encoder-decoder"),
    "classifier": config_of("encoder", head="classifier", d_classifier=7),
    "no head": config_of("encoder", head="none"),
    "tied": config_of("decoder", tie_embeddings=True),
    "gated without biases": config_of("decoder", gated=True, bias=False, qkv_bias=False),
    "attention only": config_of("decoder", d_ff=0),
    "grouped": config_of("encoder-decoder", n_kv_heads=1),
    "heads of their own width": config_of("decoder", d_model=10, d_head=6),
    "learned positions, rms": config_of("encoder-decoder", positions="learned", norm="rms"),
    "no last norm": config_of("decoder", final_norm=False),
    "odd width": config_of("decoder", d_model=9),
    "one table for both": config_of("encoder-decoder", share_embeddings=True, src_vocab_size=None),
    "words behind a mask": config_of("encoder", head="masked-language-model", n_segments=2),
    "the last token decides": config_of("decoder", head="classifier", pooling="last"),
    "parallel": config_of("decoder", parallel=True, positions="rotary", d_rotary=2),
    "parallel behind one norm": config_of("decoder", parallel=True, shared_norm=True),
    "adjacent pairs": config_of("decoder", positions="rotary", pairs="adjacent"),
    "sines first": config_of("decoder", pairs="halves"),
    "stretched": config_of("decoder", positions="rotary", rope_scaling=YARN),
    "windows": config_of("decoder", positions="rotary", windows=(3, 0)),
    "capped": config_of("decoder", attention_cap=2.0, logit_cap=1.0, attention_scale=0.7),
    "sink logit": config_of("decoder", sink_logit=True, positions="alibi", n_kv_heads=1),
    "gated heads": config_of("encoder-decoder", gated_attention=True, n_kv_heads=1),
    "gated with a sink logit": config_of("decoder", gated_attention=True, sink_logit=True),
    "normed queries": config_of("decoder", qk_norm=True, embedding_norm=True),
    "learned from the third row": config_of(
        "decoder", positions="learned", position_offset=2, count_padding=True
    ),
}
"""Configs that leave parts out, share them or give them unusual sizes."""
