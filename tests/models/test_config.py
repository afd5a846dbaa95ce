"""The config: what is a model, and in which words it says what is none."""

import math
from functools import partial
from typing import Any, get_type_hints

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.config import GenerationConfig, RopeScaling, TransformerConfig
from models.model import Transformer
from tests.models.grid import CHOICES
from tests.models.loading.mutations import ANY_JSON

FIELDS = tuple(TransformerConfig().to_dict())
OUT_OF_RANGE: dict[str, float] = (
    dict.fromkeys(("vocab_size", "n_heads", "n_kv_heads", "d_head", "n_classes"), 0)
    | dict.fromkeys(("d_classifier", "d_rotary", "max_distance", "norm_eps"), 0)
    | dict.fromkeys(("attention_scale", "attention_cap", "logit_scale", "logit_cap"), 0)
    | dict.fromkeys(("d_model", "d_ff", "position_offset", "n_segments"), -1)
    | {"max_len": 10**8, "n_layers": 201, "n_buckets": 2}
    | {"activation_dropout": 1}
    | {"dropout": math.nan, "rope_theta": math.inf, "pad_id": 256, "bos_id": -1}
)
BOTH, ROTARY = {"kind": "encoder-decoder"}, {"positions": "rotary"}


def generating(*fields: Any, **changes: Any) -> dict[str, Any]:
    return {"generation": GenerationConfig(*fields)} | changes


FAULTS: list[tuple[dict[str, Any], str]] = [
    *(({name: "x"}, f"{name} must be one of {', '.join(CHOICES[name])}, not") for name in CHOICES),
    *(({name: wrong}, f"{name} must be between ") for name, wrong in OUT_OF_RANGE.items()),
    ({"d_model": "64"}, "d_model must be int, not str."),
    ({"gated": 1}, "gated must be bool, not int."),
    (generating((10,), vocab_size=10), "generation.eos_ids must be between 0 and 9, not 10."),
    (generating((), -1), "generation.forced_first_id must be between 0 and 255, not -1."),
    ({"n_heads": 3}, "d_model 64 is not divisible by n_heads 3."),
    ({"n_kv_heads": 3}, "n_heads 4 is not divisible by n_kv_heads 3."),
    *(
        ({name: 10**6}, f"{name} must be between 1 and ")
        for name in ("n_heads", "n_kv_heads", "vocab_size", "src_vocab_size")
    ),
    ({"n_layers": 100, "n_heads": 256, "d_model": 256}, "100 layers of 256 heads are too many"),
    (BOTH | {"n_encoder_layers": 200, "n_heads": 128, "d_model": 128}, "200 layers of 128 heads"),
    ({"vocab_size": 300_000, "d_model": 20_000}, "An embedding of 300,000 tokens × 20,000 numbers"),
    ({"max_len": 10**6, "d_model": 1000}, "A table of max_len × d_model = 1,000,000,000 sinusoids"),
    (BOTH | {"head": "classifier"}, "A classifier head needs kind encoder or decoder."),
    (BOTH | {"windows": (4, 4)}, "windows are for models of one stack."),
    (BOTH | {"share_embeddings": True, "src_vocab_size": 9}, "share_embeddings needs one vocab"),
    ({"share_embeddings": True}, "share_embeddings is for encoder-decoders;"),
    ({"src_vocab_size": 9}, "src_vocab_size is for encoder-decoders;"),
    ({"n_encoder_layers": 2}, "n_encoder_layers is for encoder-decoders;"),
    ({"windows": (1.5, 2)}, "windows must be a list of int."),
    ({"windows": (4,)}, "windows must name one per layer, 2, not 1."),
    ({"windows": (4, -1)}, "Every one of windows must be between 0 and 16,777,216."),
    (generating((True,)), "generation: eos_ids must be a list of int."),
    (generating((2, 256)), "generation.eos_ids must be between 0 and 255, not 256."),
    (generating((), None, (256,)), "generation.banned_ids must be between 0 and 255, not 256."),
    (generating((), None, (0, 1, 0), vocab_size=2), "generation.banned_ids must leave something"),
    (ROTARY | {"d_model": 12}, "Rotary positions turn pairs of numbers, so a head of 3 is odd."),
    (ROTARY | {"d_rotary": 20}, "d_rotary 20 is wider than a head of 16."),
    ({"rope_scaling": RopeScaling()}, "rope_scaling is for rotary positions."),
    (ROTARY | {"rope_scaling": RopeScaling(kind="ntk")}, "rope_scaling: kind must be one of"),
    (ROTARY | {"rope_theta": 1, "rope_scaling": RopeScaling()}, "rope_theta must be above 1"),
    ({"positions": "relative", "max_distance": 16}, "max_distance must be above half of n_bu"),
    ({"d_ff_encoder": 8}, "d_ff_encoder is for encoder-decoders;"),
    ({"head": "classifier"}, "The first token of a decoder attends to itself alone, so pooling"),
    ({"n_segments": 2}, "n_segments is for models of kind encoder;"),
    ({"shared_norm": True}, "shared_norm is for parallel blocks,"),
    ({"parallel": True, "norm_position": "post"}, "Parallel blocks norm what they read, so"),
]
LIKELY = st.sampled_from([0, 1, 2, 3, 4, 12, 64, 0.1, 1e-5, True, None, *sum(CHOICES.values(), ())])


def test_faults_are_told_in_the_words_of_the_fields() -> None:
    for changes, words in FAULTS:
        config = TransformerConfig(**changes)
        sentence = config.fault() or ""
        assert sentence.startswith(words), changes
        for make in (partial(TransformerConfig.from_dict, changes), partial(Transformer, config)):
            with pytest.raises(ValueError) as refused:
                make()
            assert str(refused.value) == sentence


def test_every_choice_and_every_number_has_its_fault() -> None:
    told = {name for changes, _ in FAULTS for name in changes}
    switches = {bool, bool | None}
    free = {n for n, hint in get_type_hints(TransformerConfig).items() if hint in switches}
    assert set(FIELDS) - free - told == set()


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


def test_what_is_no_json_is_refused() -> None:
    for text in ("{", "[" * 100_000, '{"d_model": ' + "9" * 5000 + "}"):
        with pytest.raises(ValueError, match="The settings are not readable JSON"):
            TransformerConfig.from_json(text)


@given(st.dictionaries(st.sampled_from(FIELDS), LIKELY, max_size=5))
def test_what_is_not_refused_is_a_model(values: dict[str, Any]) -> None:
    config = TransformerConfig(**({"vocab_size": 8, "max_len": 8} | values))
    if config.fault() is not None:
        return
    ids = torch.zeros(1, 1, dtype=torch.long)
    inputs = (ids, ids) if config.kind == "encoder-decoder" else (ids,)
    assert Transformer(config).eval()(*inputs).isfinite().all()
