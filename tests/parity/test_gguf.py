"""A GGUF file opens as the published folder of the same model: config, weights, and answers."""

from pathlib import Path
from typing import Any

import gguf
import pytest
import torch

from models.families.effective_fields import effective_fields
from models.loading.checkpoint import load_checkpoint
from models.loading.gguf_conversion import convert_gguf
from tests.parity import cases, families
from tests.parity.llama_cpp import write_gguf
from tests.tiny import assert_equal_weights, weights

FAR: dict[str, Any] = {"relative_attention_max_distance": 128}
"""What every T5 has and no file says."""
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 9000.0}
YARN = {
    "rope_type": "yarn", "factor": 4.0, "rope_theta": 500.0, "beta_fast": 16.0, "beta_slow": 2.0,
    "original_max_position_embeddings": 16, "attention_factor": 1.25,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "rope_theta": 500000.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
}  # fmt: skip
GEMMA2 = cases.WINDOW | cases.CAPS | {"query_pre_attn_scalar": 10}
ENCODER = FAR | {"feed_forward_proj": "gated-gelu"}
ROBERTA = cases.ROBERTA | {"type_vocab_size": 2}
SAME = {
    name: cases.CASES[name]
    for name in (
        *("gpt2", "gpt2, wide by default", "gpt2, own output"),
        *("llama", "llama, biases", "llama, tied, wide heads"),
        *("qwen2", "qwen3", "gemma", "phi3", "phi3, partly turned", "phi"),
        *("gpt_neox", "gpt_neox, one after the other"),
        *("stablelm", "stablelm, parallel", "starcoder2, no biases", "gpt_bigcode", "gptj"),
    )
} | {
    case.name: case
    for case in (
        cases.tiny("llama, linear", "Llama", cases.GROUPED, rope_parameters=LINEAR),
        cases.tiny("llama, yarn", "Llama", cases.GROUPED, rope_parameters=YARN),
        cases.tiny("llama 3", "Llama", cases.GROUPED, rope_parameters=LLAMA3),
        cases.tiny("qwen3, biases", "Qwen3", cases.WIDE_HEADS, attention_bias=True),
        cases.tiny("gemma2", "Gemma2", cases.WIDE_HEADS, **GEMMA2),
        cases.tiny("starcoder2, no window", "Starcoder2", cases.GROUPED, sliding_window=None),
        cases.tiny("bert", "Bert", cases.BERT, "Model", unused=cases.POOLER),
        cases.tiny("distilbert", "DistilBert", cases.DISTILBERT, "Model"),
        cases.tiny("bloom", "Bloom", cases.BLOOM, exact=False, n_head=6, seq_length=2048),
        cases.tiny("t5", "T5", cases.T5, cases.WRITER, **FAR),
        cases.tiny("t5 v1.1", "T5", cases.V1_1, cases.WRITER, **FAR),
        cases.tiny("t5, encoder", "T5", cases.T5, "EncoderModel", **ENCODER),
    )
}
"""What a file says all of: it is the same model in every field."""
SIMILAR = {
    "mistral": (cases.CASES["mistral, no window"], "llama", set()),
    "mt5": (cases.tiny("mt5", "MT5", cases.V1_1, cases.WRITER, **FAR), "t5", set()),
    "roberta": (
        cases.tiny("roberta", "Roberta", ROBERTA, "Model", unused=cases.POOLER),
        "bert",
        {"position_offset", "count_padding", "bos_id", "generation"},
    ),
}
"""What is called otherwise there, or lacks what it never uses: the fields that differ."""


@pytest.mark.parametrize(
    ("case", "family", "differing"),
    [(case, "", set()) for case in SAME.values()] + [*SIMILAR.values()],
    ids=[*SAME, *SIMILAR],
)
def test_opens_as_its_published_folder(
    case: families.Case, family: str, differing: set[str], tmp_path: Path
) -> None:
    pair = families.open_pair(case, tmp_path / "folder")
    write_gguf(pair.reference, tmp_path / "model.gguf")
    found = load_checkpoint(tmp_path / "model.gguf")
    assert (found.family, found.unused, found.unfollowed) == (family or pair.ours.family, (), ())
    fields, theirs = effective_fields(found.config), effective_fields(pair.ours.config)
    assert {key for key in fields if fields[key] != theirs[key]} == differing
    if not family:
        assert fields.keys() == theirs.keys()
        assert_equal_weights(weights(found.model), weights(pair.ours.model))
    read = families.Pair(case, pair.reference, found)
    inputs = families.inputs_of(pair, families.LENGTH)
    expected = families.reference_values(read, inputs)["logits"]
    families.assert_close(families.our_trace(read, inputs).output, expected, case.name)


def some_vocabulary(writer: gguf.GGUFWriter) -> None:
    """The reference takes the size of the vocabulary from its tokens."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([chr(97 + i % 26) * (1 + i // 26) for i in range(53)])
    writer.add_token_types([1] * 53)
    writer.add_token_merges(["a a"])


@pytest.mark.parametrize(
    "name",
    [
        *("llama", "llama, tied, wide heads", "qwen2", "stablelm", "stablelm, parallel"),
        *("starcoder2, no window", "bloom"),
    ],
)
def test_answers_as_the_reference_reads_the_same_file(name: str, tmp_path: Path) -> None:
    """Where its own reading of these files leaves nothing out."""
    case = SAME[name]
    write_gguf(families.build_reference(case), tmp_path / "model.gguf", more=some_vocabulary)
    theirs = case.reference.from_pretrained(tmp_path, gguf_file="model.gguf").eval()
    ours = load_checkpoint(tmp_path / "model.gguf").model
    ids = torch.randint(53, (2, families.LENGTH), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        families.assert_close(ours(ids), theirs(ids).logits, name)


def test_becomes_a_published_folder(tmp_path: Path) -> None:
    for name in ("llama", "gpt2", "gemma"):
        write_gguf(families.build_reference(cases.CASES[name]), tmp_path / f"{name}.gguf")
        for _ in range(2):  # the second takes the place of the first
            assert convert_gguf(tmp_path / f"{name}.gguf", tmp_path / name) == name
        both = (load_checkpoint(tmp_path / each).model for each in (f"{name}.gguf", name))
        assert_equal_weights(*map(weights, both))
