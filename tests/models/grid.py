"""Every kind of model the core can build, small, as (name, config)."""

from __future__ import annotations

from itertools import product

import pytest

from models.config import KINDS, NORM_POSITIONS, NORMS, POSITIONS
from tests.models.building import config_of

GRID = pytest.mark.parametrize(
    ("kind", "positions", "norm", "norm_position"),
    list(product(KINDS, POSITIONS, NORMS, NORM_POSITIONS)),
    ids=str,
)
KINDS_AND_POSITIONS = pytest.mark.parametrize(
    ("kind", "positions"), list(product(KINDS, POSITIONS)), ids=str
)
WRITERS = pytest.mark.parametrize(
    ("kind", "positions"),
    list(product(("decoder", "encoder-decoder"), POSITIONS)),
    ids=str,
)

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
}
"""Configs that leave parts out, share them or give them unusual sizes."""
EVERY_ODDITY = pytest.mark.parametrize("config", ODDITIES.values(), ids=ODDITIES.keys())
