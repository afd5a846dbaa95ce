"""What an encoder or encoder-decoder cannot be here is refused by its name, never approximated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.described import describe
from models.files import CheckpointError
from tests.models.opening import check_sentence

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "bert", "is_decoder": True}, "is_decoder True"),
    ({"model_type": "bert", "position_embedding_type": "relative_key"}, "'relative_key'"),
    ({"model_type": "bert", "architectures": ["BertLMHeadModel"]}, "BertLMHeadModel"),
    ({"model_type": "bert", "hidden_act": "mish"}, "'mish'"),
    ({"model_type": "roberta", "architectures": ["RobertaForCausalLM"]}, "RobertaForCausalLM"),
    ({"model_type": "roberta", "pad_token_id": 2}, "pad_token_id must be a token of its own"),
    ({"model_type": "roberta", "pad_token_id": None}, "pad_token_id must be a token of its own"),
    ({"model_type": "roberta", "max_position_embeddings": 2}, "must be above 2"),
    (
        {"model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "hidden_act": "relu"},
        "hidden_act 'relu'",
    ),
    ({"model_type": "bart", "decoder_attention_heads": 8}, "encoder_attention_heads 16 and"),
    ({"model_type": "mbart", "decoder_ffn_dim": 7}, "decoder_ffn_dim 7 differ"),
    ({"model_type": "marian", "encoder_attention_heads": 8}, "decoder_attention_heads 16 differ"),
    ({"model_type": "bart", "normalize_before": True}, "normalize_before True"),
    ({"model_type": "mbart", "normalize_before": False}, "normalize_before False"),
    ({"model_type": "marian", "static_position_embeddings": False}, "static_position_embeddings"),
    ({"model_type": "bart", "is_encoder_decoder": False}, "is_encoder_decoder False"),
    (
        {"model_type": "bart", "architectures": ["BartForSequenceClassification"]},
        "BartForSequenceClassification is not supported",
    ),
    (
        {"model_type": "t5", "architectures": ["T5ForSequenceClassification"]},
        "T5ForSequenceClassification is not supported",
    ),
    ({"model_type": "t5", "feed_forward_proj": "gated-elu"}, "'gated-elu'"),
    ({"model_type": "t5", "dense_act_fn": "gelu"}, "dense_act_fn 'gelu'"),
    ({"model_type": "t5", "is_gated_act": True}, "is_gated_act True"),
    ({"model_type": "t5", "is_decoder": True}, "is_decoder True"),
    ({"model_type": "t5", "relative_attention_max_distance": 5}, "max_distance must be above"),
    *(
        ({"model_type": family}, f"{family} is not supported")
        for family in ("electra", "mpnet", "deberta-v2", "umt5", "xlm-roberta-xl", "m2m_100")
    ),
]


@pytest.mark.parametrize(("config", "words"), REFUSED, ids=lambda one: str(one)[:80])
def test_is_refused_by_name(config: dict[str, Any], words: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError) as refused:
        describe(tmp_path)
    check_sentence(str(refused.value), tmp_path)
    assert words in str(refused.value)


@pytest.mark.parametrize("family", ["bert", "roberta", "bart", "mbart", "marian", "t5", "mt5"])
def test_a_family_s_own_config_is_a_model(family: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    assert describe(tmp_path).config.fault() is None
