"""Mistakes in the tables of encoders and encoder-decoders: the comparison catches every one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.config import TransformerConfig
from models.transformer import Transformer
from tests.parity import test_encoder_decoder_families, test_encoder_families
from tests.parity.families import Case
from tests.parity.planting import Mistake, differs, field, names

CASES: dict[str, Case] = {
    case.name: case for case in test_encoder_families.CASES + test_encoder_decoder_families.CASES
}


def one_row_off(config: TransformerConfig) -> TransformerConfig:
    rows, offset = config.max_len + config.position_offset, config.position_offset - 1
    return config.replace(position_offset=offset, max_len=rows - offset)


def look_the_wrong_way(model: Transformer) -> None:
    for stack in (model.encoder, model.decoder):
        assert stack is not None
        stack.positions.causal = not stack.positions.causal  # type: ignore[assignment]


def lose_second_sentence(model: Transformer) -> None:
    assert model.encoder is not None
    assert model.encoder.segments is not None
    with torch.no_grad():
        model.encoder.segments.weight[1] = model.encoder.segments.weight[0]


BERT, DISTILBERT, BART = "encoder.layer.{i}.", "transformer.layer.{i}.", "decoder.layers.{i}."
T5 = "encoder.block.{i}.layer.1.DenseReluDense."
TABLE = "{}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"

MISTAKES = [
    field("segments lost", "bert, masked", n_segments=0),
    Mistake("second sentence lost", "bert, masked", core=lose_second_sentence),
    field("the other gelu", "bert, masked", activation="gelu-tanh"),
    field("gelu, not tanh's", "bert, bare", activation="gelu"),
    field("eps of others", "bert, masked", norm_eps=1e-5),
    field("embedding norm lost", "bert, masked", embedding_norm=False),
    field("embedding scaled", "bert, masked", scale_embedding=True),
    field("pre, not post", "bert, masked", norm_position="pre"),
    field("head's transform lost", "bert, masked", head="language-model"),
    field("bias of the words lost", "bert, masked", head_bias=False),
    field("positions skip padding", "bert, masked", count_padding=False),
    field("pooler without its tanh", "bert, classes", classifier_activation="relu"),
    field("pooler of the last", "bert, classes", pooling="last"),
    field("pooler of the mean", "bert, classes", pooling="mean"),
    names(
        "norms swapped", "bert, bare", BERT + "attention.output.LayerNorm",
        BERT + "output.LayerNorm",
    ),
    names(
        "queries and values swapped", "bert, bare", BERT + "attention.self.query",
        BERT + "attention.self.value",
    ),
    field("eps of others", "distilbert, masked", norm_eps=1e-5),
    field("tanh, not relu", "distilbert, classes", classifier_activation="tanh"),
    names(
        "norms swapped", "distilbert, masked", DISTILBERT + "sa_layer_norm",
        DISTILBERT + "output_layer_norm",
    ),
    Mistake("positions one row off", "roberta, masked", one_row_off),
    field("positions count padding", "roberta, masked", count_padding=True),
    field("only segment lost", "xlm-roberta", n_segments=0),
    field("bias of the words lost", "roberta, masked", head_bias=False),
    field("hidden layer without its tanh", "roberta, classes", classifier_activation="relu"),
    field("sinusoids interleaved", "marian", pairs="adjacent"),
    field("embedding not scaled", "marian", scale_embedding=False),
    field("final_logits_bias lost", "marian", head_bias=False),
    field("pre, not post", "marian", norm_position="pre"),
    field("gelu, not swish", "marian", activation="gelu"),
    field("positions skip padding", "marian", count_padding=False),
    Mistake("positions one row off", "bart", one_row_off),
    field("embedding norm lost", "bart", embedding_norm=False),
    field("pre, not post", "bart", norm_position="pre"),
    names(
        "norms swapped", "bart", BART + "encoder_attn_layer_norm", BART + "final_layer_norm"
    ),
    names(
        "attentions swapped", "bart", BART + "encoder_attn.q_proj", BART + "self_attn.q_proj"
    ),
    field("post, not pre", "mbart", norm_position="post"),
    field("last norms lost", "mbart", final_norm=False),
    field("scores scaled", "t5", attention_scale=None),
    field("output not scaled", "t5", logit_scale=1.0),
    field("output scaled", "t5 v1.1", logit_scale=24**-0.5),
    field("output scaled", "mt5", logit_scale=24**-0.5),
    field("embedding scaled", "t5", scale_embedding=True),
    field("eps of others", "t5", norm_eps=1e-5),
    field("far distances as usual", "t5", max_distance=128),
    field("the other gelu", "t5 v1.1", activation="gelu"),
    names("gate and up swapped", "t5 v1.1", T5 + "wi_0", T5 + "wi_1"),
    names("tables of distances swapped", "t5", TABLE.format("encoder"), TABLE.format("decoder")),
    Mistake("distances of both stacks the wrong way", "t5", core=look_the_wrong_way),
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_is_caught(mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="differs by"):
        differs(mistake, CASES[mistake.case], tmp_path, monkeypatch)


@pytest.mark.parametrize("case", sorted({mistake.case for mistake in MISTAKES}))
def test_without_one_nothing_differs(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    differs(Mistake("nothing", case), CASES[case], tmp_path, monkeypatch)
