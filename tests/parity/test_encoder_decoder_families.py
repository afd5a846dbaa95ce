"""Marian, BART, T5 and their like are the reference, and write what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BartModel,
    BlenderbotConfig,
    BlenderbotForConditionalGeneration,
    MarianConfig,
    MarianModel,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    MT5Config,
    MT5ForConditionalGeneration,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PLBartConfig,
    PLBartForConditionalGeneration,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
)

from models.checkpoint import load_checkpoint
from models.generation import written
from tests.grids import grid
from tests.parity.comparing import assert_close, compare, is_the_reference
from tests.parity.families import Case, build_reference, inputs_of, open_pair

SIZES = {
    "vocab_size": 53, "d_model": 24, "encoder_layers": 2, "decoder_layers": 3,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40, "max_position_embeddings": 37,
}  # fmt: skip
MARIAN = SIZES | {
    "pad_token_id": 52, "decoder_start_token_id": 52, "eos_token_id": 0,
    "activation_function": "swish", "scale_embedding": True,
}  # fmt: skip
T5 = {
    "vocab_size": 53, "d_model": 24, "d_kv": 7, "d_ff": 40, "num_layers": 3,
    "num_decoder_layers": 2, "num_heads": 4, "relative_attention_num_buckets": 12,
    "relative_attention_max_distance": 9, "decoder_start_token_id": 0,
}  # fmt: skip
V1_1 = T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
SINUSOIDS = ("*embed_positions.weight",)

CASES = [
    Case("marian", MarianConfig(**MARIAN), MarianMTModel, fixed=SINUSOIDS),
    Case(
        "marian, two vocabularies",
        MarianConfig(**MARIAN, share_encoder_decoder_embeddings=False, decoder_vocab_size=59),
        MarianMTModel,
        fixed=SINUSOIDS,
    ),
    Case(
        "marian, bare",
        MarianConfig(**MARIAN),
        MarianModel,
        fixed=SINUSOIDS,
        unused=SINUSOIDS,
    ),
    Case("bart", BartConfig(**SIZES), BartForConditionalGeneration, shards=True),
    Case(
        "bart, nothing shared",
        BartConfig(**SIZES, tie_word_embeddings=False, activation_function="relu"),
        BartForConditionalGeneration,
        unused=("model.shared.weight",),
    ),
    Case("bart, bare", BartConfig(**SIZES, scale_embedding=True), BartModel),
    Case(
        "mbart",
        MBartConfig(**SIZES, scale_embedding=True, decoder_start_token_id=2),
        MBartForConditionalGeneration,
    ),
    Case("plbart", PLBartConfig(**SIZES), PLBartForConditionalGeneration),
    Case(
        "pegasus",
        PegasusConfig(**SIZES, scale_embedding=True, activation_function="relu"),
        PegasusForConditionalGeneration,
        fixed=SINUSOIDS,
        unused=SINUSOIDS,
    ),
    Case("blenderbot", BlenderbotConfig(**SIZES), BlenderbotForConditionalGeneration),
    Case("t5", T5Config(**T5), T5ForConditionalGeneration),
    Case("t5 v1.1", T5Config(**V1_1), T5ForConditionalGeneration, shards=True),
    Case("t5, gated silu", T5Config(**T5 | {"feed_forward_proj": "gated-silu"}), T5EncoderModel),
    Case("mt5", MT5Config(**V1_1), MT5ForConditionalGeneration),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_is_the_reference(case: Case, tmp_path: Path) -> None:
    is_the_reference(case, tmp_path)


@pytest.mark.parametrize("distance", [9, 128])
def test_far_distances_share_buckets(distance: int, tmp_path: Path) -> None:
    config = T5Config(**T5 | {"relative_attention_max_distance": distance})
    pair = open_pair(Case("t5", config, T5ForConditionalGeneration), tmp_path)
    compare(pair, inputs_of(pair, 150))


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in ("marian", "bart", "t5")], ids=str
)
def test_without_a_word_about_padding(case: Case, tmp_path: Path) -> None:
    """A target that begins with the padding token (Marian, T5) is read whole."""
    pair = open_pair(case, tmp_path)
    start, pad = pair.ours.config.bos_id, pair.ours.config.pad_id
    assert start is not None
    source, target = torch.tensor([[5, 6, 7, 8]]), torch.tensor([[start, 9, 10]])
    with torch.no_grad():
        theirs = pair.reference(input_ids=source, decoder_input_ids=target).logits
        ours = pair.ours.model(source, target)
        padded = pair.ours.model(*(F.pad(ids, (0, 2), value=pad) for ids in (source, target)))
    assert_close(ours, theirs, "logits")
    assert_close(padded[:, :3], theirs, "logits of a padded text")


SOURCE = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])


@grid(
    "file, forced, case",
    ["config.json", "generation_config.json"],
    [None, 7],
    [case for case in CASES if case.name in ("marian", "bart", "mbart")],
)
def test_writes_what_the_folder_says_of_writing(
    case: Case, forced: int | None, file: str, tmp_path: Path
) -> None:
    """As the reference does by its own reading of the folder, told the length alone."""
    reference = build_reference(case)
    free = reference.generate(SOURCE, max_new_tokens=9, do_sample=False)
    reference.save_pretrained(tmp_path)
    if file == "config.json":
        (tmp_path / "generation_config.json").unlink()
    said = json.loads((tmp_path / file).read_text()) | {
        "bad_words_ids": [[free[0, 1].item()], [free[1, 2].item()], [12, 13]],
        "forced_bos_token_id": forced,
        "forced_eos_token_id": None,
    }
    (tmp_path / file).write_text(json.dumps(said))
    reference = case.reference.from_pretrained(tmp_path).eval()
    theirs = reference.generate(SOURCE, max_new_tokens=9, do_sample=False).tolist()
    assert theirs != free.tolist()
    ours = load_checkpoint(tmp_path).model
    assert written(ours, SOURCE, max_length=9, greedy=True).tolist() == theirs
