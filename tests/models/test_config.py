"""The config: what is a model, and in which words it says what is none."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.config import CHOICES, RopeScaling, TransformerConfig
from models.transformer import Transformer
from tests.models.building import config_of, inputs_of
from tests.models.grid import GRID, ODDITIES

FIELDS = tuple(TransformerConfig().to_dict())
IMAGES = {
    "kind": "encoder", "head": "classifier", "positions": "learned", "patch_size": 5, "max_len": 10,
}  # fmt: skip
FAULTS: dict[str, dict[str, Any]] = {
    "kind must be one of encoder, decoder, encoder-decoder, not 'x'.": {"kind": "x"},
    "head must be one of language-model, masked-language-model, classifier, none, not 'x'.": {
        "head": "x"
    },
    "positions must be one of sinusoidal, learned, rotary, relative, alibi, none, not 'x'.": {
        "positions": "x"
    },
    "pairs must be one of adjacent, halves, not 'x'.": {"pairs": "x"},
    "classifier_activation must be one of relu, tanh, not 'x'.": {"classifier_activation": "x"},
    "norm must be one of layer, rms, not 'batch'.": {"norm": "batch"},
    "norm_position must be one of pre, post, sandwich, not 'x'.": {"norm_position": "x"},
    "activation must be one of relu, gelu, gelu-tanh, silu, not 'tanh'.": {"activation": "tanh"},
    "pooling must be one of first, mean, last, not 'max'.": {"pooling": "max"},
    "d_model must be int, not str.": {"d_model": "64"},
    "gated must be bool, not int.": {"gated": 1},
    "dropout must be float, not NoneType.": {"dropout": None},
    "vocab_size must be between 1 and 1,000,000, not 0.": {"vocab_size": 0},
    "d_model must be between 1 and 1,000,000, not -4.": {"d_model": -4},
    "n_heads must be between 1 and 1,000,000, not 0.": {"n_heads": 0},
    "n_kv_heads must be between 1 and 1,000,000, not 0.": {"n_kv_heads": 0},
    "d_head must be between 1 and 1,000,000, not 0.": {"d_head": 0},
    "max_len must be between 1 and 16,777,216, not 100000000.": {"max_len": 10**8},
    "n_layers must be between 1 and 200, not 201.": {"n_layers": 201},
    "d_ff must be between 0 and 1,000,000, not -1.": {"d_ff": -1},
    "n_classes must be between 1 and 1,000,000, not 0.": {"n_classes": 0},
    "d_classifier must be between 1 and 1,000,000, not 0.": {"d_classifier": 0},
    "dropout must be between 0 and 0.95, not 1.0.": {"dropout": 1.0},
    "dropout must be between 0 and 0.95, not nan.": {"dropout": float("nan")},
    "norm_eps must be between 1e-12 and 1, not 0.": {"norm_eps": 0},
    "rope_theta must be between 1 and 1,000,000,000,000.0, not inf.": {"rope_theta": float("inf")},
    "d_model 64 is not divisible by n_heads 3.": {"n_heads": 3},
    "n_heads 4 is not divisible by n_kv_heads 3.": {"n_kv_heads": 3},
    "Rotary positions turn pairs of numbers, so a head of 3 is odd.": {
        "positions": "rotary",
        "d_model": 12,
    },
    "A table of max_len × d_model = 1,000,000,000 sinusoids is too large.": {
        "max_len": 10**6,
        "d_model": 1000,
    },
    "A classifier head needs kind encoder or decoder.": {
        "kind": "encoder-decoder",
        "head": "classifier",
    },
    "src_vocab_size is for encoder-decoders; this model reads what vocab_size counts.": {
        "src_vocab_size": 9
    },
    "n_encoder_layers is for encoder-decoders; n_layers counts the only stack.": {
        "n_encoder_layers": 2
    },
    "max_distance must be between 1 and 16,777,216, not 0.": {"max_distance": 0},
    "n_buckets must be between 4 and 1,000,000, not 2.": {"n_buckets": 2},
    "position_offset must be between 0 and 1,000,000, not -1.": {"position_offset": -1},
    "n_segments must be between 0 and 1,000,000, not -1.": {"n_segments": -1},
    "d_rotary must be between 1 and 1,000,000, not 0.": {"d_rotary": 0},
    "attention_scale must be between 1e-06 and 1,000,000.0, not 0.": {"attention_scale": 0},
    "attention_cap must be between 0.001 and 1,000,000.0, not 0.": {"attention_cap": 0},
    "logit_scale must be between 1e-06 and 1,000,000.0, not 0.": {"logit_scale": 0},
    "logit_cap must be between 0.001 and 1,000,000.0, not 0.": {"logit_cap": 0},
    "windows must be a list of int.": {"windows": (1.5, 2)},
    "windows must name one per layer, 2, not 1.": {"windows": (4,)},
    "Every one of windows must be between 0 and 16,777,216.": {"windows": (4, -1)},
    "windows are for models of one stack.": {"kind": "encoder-decoder", "windows": (4, 4)},
    "patch_size must be between 0 and 1,000, not 1001.": {"patch_size": 1001},
    "n_channels must be between 1 and 1,000, not 0.": {"n_channels": 0},
    "Images are read by encoders with a classifier head or none.": IMAGES | {"kind": "decoder"},
    "Images need a learned position for each patch of a square and one before.": (
        IMAGES | {"max_len": 11}
    ),
    "pad_id is for those that read tokens, not images.": IMAGES | {"pad_id": 0},
    "more_eos_ids must be a list of int.": {"more_eos_ids": (True,)},
    "Every one of more_eos_ids must be between 0 and 255.": {"more_eos_ids": (256,)},
    "Every one of banned_ids must be between 0 and 255.": {"banned_ids": (256,)},
    "banned_ids must leave something to write.": {"vocab_size": 2, "banned_ids": (0, 1, 0)},
    "d_rotary 20 is wider than a head of 16.": {"positions": "rotary", "d_rotary": 20},
    "rope_scaling is for rotary positions.": {"rope_scaling": RopeScaling()},
    "rope_scaling: kind must be one of linear, llama3, yarn, not 'ntk'.": {
        "positions": "rotary",
        "rope_scaling": RopeScaling(kind="ntk"),
    },
    "rope_theta must be above 1 to be scaled.": {
        "positions": "rotary",
        "rope_theta": 1,
        "rope_scaling": RopeScaling(),
    },
    "max_distance must be above half of n_buckets, whose near half counts one by one.": {
        "positions": "relative",
        "max_distance": 16,
    },
    "share_embeddings is for encoder-decoders; this model has one table.": {
        "share_embeddings": True
    },
    "share_embeddings needs one vocabulary, but src_vocab_size is another.": {
        "kind": "encoder-decoder",
        "share_embeddings": True,
        "src_vocab_size": 9,
    },
    "shared_norm is for parallel blocks, whose two parts read the same stream.": {
        "shared_norm": True
    },
    "Parallel blocks norm what they read, so norm_position must be pre.": {
        "parallel": True,
        "norm_position": "post",
    },
    "pad_id must be between 0 and 255, not 256.": {"pad_id": 256},
    "first_id must be between 0 and 255, not -1.": {"first_id": -1},
    "bos_id must be between 0 and 255, not -1.": {"bos_id": -1},
    "eos_id must be between 0 and 9, not 10.": {"eos_id": 10, "vocab_size": 10},
}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
LIKELY = st.sampled_from([0, 1, 2, 3, 4, 12, 64, 0.1, 1e-5, True, None, *sum(CHOICES.values(), ())])


def test_faults_are_told_in_the_words_of_the_fields() -> None:
    for sentence, changes in FAULTS.items():
        config = TransformerConfig(**changes)
        assert config.fault() == sentence
        with pytest.raises(ValueError) as refused:
            TransformerConfig.from_dict(changes)
        assert str(refused.value) == sentence
        with pytest.raises(ValueError) as refused:
            Transformer(config)
        assert str(refused.value) == sentence


def test_every_choice_and_every_number_has_its_fault() -> None:
    told = {sentence.split()[0].rstrip(":") for sentence in FAULTS}
    told |= {name for changes in FAULTS.values() for name in changes}
    switches = {bool, bool | None}
    free = {n for n, hint in get_type_hints(TransformerConfig).items() if hint in switches}
    assert set(FIELDS) - free - told == set()


@GRID
def test_every_combination_is_a_model(
    kind: str, positions: str, norm: str, norm_position: str, kv_heads: int
) -> None:
    how = {"positions": positions, "norm": norm, "norm_position": norm_position}
    config = config_of(kind, n_kv_heads=kv_heads, **how)
    assert config.fault() is None
    assert TransformerConfig.from_json(config.to_json()) == config


def test_unusual_models_run() -> None:
    for name, config in ODDITIES.items():
        assert TransformerConfig.from_json(config.to_json()) == config, name
        assert Transformer(config)(*inputs_of(config)).isfinite().all(), name


def test_derived_sizes() -> None:
    config = config_of("encoder-decoder")
    assert (config.kv_heads, config.head_width, config.encoder_layers) == (3, 4, 1)
    assert config.stacks == ("encoder", "decoder")
    assert config_of("encoder").stacks == ("encoder",)
    other = config_of("decoder", n_kv_heads=1, d_head=6)
    assert (other.kv_heads, other.head_width, other.encoder_layers) == (1, 6, 2)


def test_a_config_has_no_effect_on_the_world() -> None:
    before = torch.get_rng_state()
    assert hash(TransformerConfig()) == hash(TransformerConfig())
    assert torch.equal(before, torch.get_rng_state())


@given(ANY_JSON | st.dictionaries(st.sampled_from(FIELDS), ANY_JSON | LIKELY, max_size=6))
def test_anything_else_is_refused_in_one_sentence(values: object) -> None:
    try:
        config = TransformerConfig.from_dict(values)
    except ValueError as refused:
        sentence = str(refused)
        assert sentence.endswith(".")
        assert "\n" not in sentence
        assert len(sentence) < 300
        sentence.encode()
    else:
        assert TransformerConfig.from_json(config.to_json()) == config


@given(st.dictionaries(st.sampled_from(FIELDS), LIKELY, max_size=5))
def test_what_is_not_refused_is_a_model(values: dict[str, Any]) -> None:
    config = TransformerConfig(**({"vocab_size": 8, "max_len": 8} | values))
    if config.fault() is not None:
        return
    model = Transformer(config).eval()
    ids = torch.zeros(1, 1, dtype=torch.long)
    inputs = (ids, ids) if config.kind == "encoder-decoder" else (ids,)
    assert model(*inputs).isfinite().all()
