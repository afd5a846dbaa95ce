"""The config in words: every choice has its words, and what is rare is said where it is."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.describe import in_short, in_words
from models import TransformerConfig
from models.config import CHOICES, RopeScaling

PLAIN = TransformerConfig()


def test_every_choice_has_its_words(subtests: pytest.Subtests) -> None:
    for field, value in [(field, value) for field, values in CHOICES.items() for value in values]:
        with subtests.test(field=field):
            config = PLAIN.replace(**{field: value})
            assert in_words(config).endswith(".")
            assert in_short(config)


def test_what_few_models_have_is_said(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tie_embeddings": True}, "the head is the token embedding"),
        ({"n_segments": 2}, "2 sentences are told apart"),
        ({"embedding_norm": True}, "the embedding is normed"),
        ({"parallel": True}, "attention and feed-forward stand side by side"),
        ({"qk_norm": True}, "queries and keys are normed"),
        ({"attention_cap": 50.0, "logit_cap": 30.0}, "scores stay within ±50, logits"),
        ({"windows": (0, 4096)}, "1 of 2 layers look back at most 4,096 tokens"),
        (
            {"positions": "rotary", "rope_scaling": RopeScaling("yarn", 4.0)},
            "rotations are stretched 4 times (yarn)",
        ),
        ({"kind": "encoder-decoder", "share_embeddings": True}, "both stacks read one embedding"),
        ({"d_ff": 3072, "d_model": 1024}, "width 1,024, a feed-forward layer of 3,072"),
    ]
    for changes, words in cases:
        with subtests.test(changes=changes):
            assert words in in_words(PLAIN.replace(**changes))
            assert words not in in_words(PLAIN)


def test_a_plain_model_has_nothing_besides() -> None:
    assert "Besides" not in in_words(PLAIN)
