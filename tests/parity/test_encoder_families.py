"""BERT, DistilBERT, RoBERTa, XLM-R and CamemBERT are the reference, with every head they have."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertForSequenceClassification,
    BertModel,
    CamembertConfig,
    CamembertForSequenceClassification,
    DistilBertConfig,
    DistilBertForMaskedLM,
    DistilBertForSequenceClassification,
    DistilBertModel,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForSequenceClassification,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

from tests.parity.comparing import is_the_reference
from tests.parity.families import Case

BERT = {
    "vocab_size": 53, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 40, "max_position_embeddings": 37, "num_labels": 5, "pad_token_id": 0,
}  # fmt: skip
ROBERTA = BERT | {
    "pad_token_id": 3, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "bos_token_id": 0,
    "eos_token_id": 2,
}  # fmt: skip
DISTILBERT = {
    "vocab_size": 53, "dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40,
    "max_position_embeddings": 37, "num_labels": 5,
}  # fmt: skip
POOLER = ("*pooler.dense.*",)

CASES = [
    Case("bert, masked", BertConfig(**BERT), BertForMaskedLM),
    Case(
        "bert, untied", BertConfig(**BERT, tie_word_embeddings=False), BertForMaskedLM, shards=True
    ),
    Case("bert, classes", BertConfig(**BERT), BertForSequenceClassification),
    Case("bert, bare", BertConfig(**BERT, hidden_act="gelu_new"), BertModel, unused=POOLER),
    Case(
        "bert, pretraining",
        BertConfig(**BERT, hidden_act="relu"),
        BertForPreTraining,
        unused=(*POOLER, "cls.seq_relationship.*"),
    ),
    Case("distilbert, masked", DistilBertConfig(**DISTILBERT), DistilBertForMaskedLM),
    Case(
        "distilbert, classes", DistilBertConfig(**DISTILBERT), DistilBertForSequenceClassification
    ),
    Case(
        "distilbert, sinusoids",
        DistilBertConfig(**DISTILBERT, sinusoidal_pos_embds=True),
        DistilBertModel,
    ),
    Case("roberta, masked", RobertaConfig(**ROBERTA), RobertaForMaskedLM),
    Case("roberta, classes", RobertaConfig(**ROBERTA), RobertaForSequenceClassification),
    Case(
        "roberta, two segments",
        RobertaConfig(**ROBERTA | {"type_vocab_size": 2}),
        RobertaModel,
        unused=POOLER,
    ),
    Case("xlm-roberta", XLMRobertaConfig(**ROBERTA), XLMRobertaForMaskedLM),
    Case("camembert", CamembertConfig(**ROBERTA), CamembertForSequenceClassification),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_is_the_reference(case: Case, tmp_path: Path) -> None:
    is_the_reference(case, tmp_path)
