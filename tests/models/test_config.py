"""The config: what is a model, and in which words it says what is none."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.config import CHOICES, TransformerConfig
from models.transformer import Transformer
from tests.models.building import config_of, inputs_of
from tests.models.grid import EVERY_ODDITY, GRID

FIELDS = tuple(TransformerConfig().to_dict())
FAULTS: dict[str, dict[str, Any]] = {
    "kind must be one of encoder, decoder, encoder-decoder, not 'x'.": {"kind": "x"},
    "head must be one of language-model, classifier, none, not 'x'.": {"head": "x"},
    "positions must be one of sinusoidal, learned, rotary, alibi, none, not 'x'.": {
        "positions": "x"
    },
    "norm must be one of layer, rms, not 'batch'.": {"norm": "batch"},
    "norm_position must be one of pre, post, not 'x'.": {"norm_position": "x"},
    "activation must be one of relu, gelu, silu, not 'tanh'.": {"activation": "tanh"},
    "pooling must be one of first, mean, not 'max'.": {"pooling": "max"},
    "d_model must be int, not str.": {"d_model": "64"},
    "gated must be bool, not int.": {"gated": 1},
    "dropout must be float, not NoneType.": {"dropout": None},
    "vocab_size must be between 1 and 1,000,000, not 0.": {"vocab_size": 0},
    "d_model must be between 1 and 1,000,000, not -4.": {"d_model": -4},
    "n_heads must be between 1 and 1,000,000, not 0.": {"n_heads": 0},
    "n_kv_heads must be between 1 and 1,000,000, not 0.": {"n_kv_heads": 0},
    "d_head must be between 1 and 1,000,000, not 0.": {"d_head": 0},
    "max_len must be between 1 and 1,000,000, not 10000000.": {"max_len": 10**7},
    "n_layers must be between 1 and 1,000, not 1001.": {"n_layers": 1001},
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
    "pad_id must be between 0 and 255, not 256.": {"pad_id": 256},
    "bos_id must be between 0 and 255, not -1.": {"bos_id": -1},
    "eos_id must be between 0 and 9, not 10.": {"eos_id": 10, "vocab_size": 10},
}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
LIKELY = st.sampled_from([0, 1, 2, 3, 4, 12, 64, 0.1, 1e-5, True, None, *sum(CHOICES.values(), ())])


@pytest.mark.parametrize(("sentence", "changes"), FAULTS.items(), ids=FAULTS.keys())
def test_faults_are_told_in_the_words_of_the_fields(sentence: str, changes: dict[str, Any]) -> None:
    config = TransformerConfig(**changes)
    assert config.fault() == sentence
    with pytest.raises(ValueError) as refused:
        TransformerConfig.from_dict(changes)
    assert str(refused.value) == sentence
    with pytest.raises(ValueError) as refused:
        Transformer(config)
    assert str(refused.value) == sentence


def test_every_choice_and_every_number_has_its_fault() -> None:
    told = {sentence.split()[0] for sentence in FAULTS}
    free = {"scale_embedding", "final_norm", "qkv_bias", "bias", "tie_embeddings"}
    assert set(FIELDS) - free - told == set()


@GRID
def test_every_combination_is_a_model(
    kind: str, positions: str, norm: str, norm_position: str
) -> None:
    config = config_of(kind, positions=positions, norm=norm, norm_position=norm_position)
    assert config.fault() is None
    assert TransformerConfig.from_json(config.to_json()) == config


@EVERY_ODDITY
def test_unusual_models_run(config: TransformerConfig) -> None:
    assert TransformerConfig.from_json(config.to_json()) == config
    assert Transformer(config)(*inputs_of(config)).isfinite().all()


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


@settings(max_examples=300, deadline=None)
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


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), LIKELY, max_size=5))
def test_what_is_not_refused_is_a_model(values: dict[str, Any]) -> None:
    config = TransformerConfig(**({"vocab_size": 8, "max_len": 8} | values))
    if config.fault() is not None:
        return
    model = Transformer(config).eval()
    ids = torch.zeros(1, 1, dtype=torch.long)
    inputs = (ids, ids) if config.kind == "encoder-decoder" else (ids,)
    assert model(*inputs).isfinite().all()
