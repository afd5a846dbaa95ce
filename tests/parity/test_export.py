"""Out again: the reference library loads what we export and says the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file
from torch import Tensor

from explorer.text import word_tokenizer
from models.checkpoint import CheckpointError, load_checkpoint
from models.config import RopeScaling, TransformerConfig
from models.export import export_checkpoint, exportable
from models.trace import trace
from models.training import Batch, TrainConfig, train
from models.transformer import Transformer
from tests.models.building import ids_of, keep_of_lengths, shaken
from tests.parity.cases import CASES
from tests.parity.comparing import difference
from tests.parity.families import open_pair

SIZES = TransformerConfig(
    vocab_size=29, d_model=24, n_layers=3, n_heads=4, d_ff=40, max_len=19, pad_id=0,
    scale_embedding=False, pooling="last", classifier_bias=False, n_classes=5,
)  # fmt: skip
GPT2 = SIZES.replace(
    positions="learned", activation="gelu-tanh", head_bias=False, tie_embeddings=True
)
LLAMA = SIZES.replace(
    positions="rotary", norm="rms", norm_eps=1e-6, activation="silu", gated=True,
    bias=False, qkv_bias=False, n_kv_heads=2, bos_id=1, eos_id=2, more_eos_ids=(3, 4),
)  # fmt: skip
BERT = SIZES.replace(
    kind="encoder", head="masked-language-model", positions="learned", count_padding=True,
    n_segments=2, embedding_norm=True, norm_position="post", norm_eps=1e-12, final_norm=False,
    activation="gelu", tie_embeddings=True, pooling="first", classifier_bias=True,
)  # fmt: skip
NEOX = SIZES.replace(
    positions="rotary", d_rotary=4, rope_theta=700.0, parallel=True, activation="gelu",
    head_bias=False,
)  # fmt: skip
GPTJ = SIZES.replace(
    positions="rotary", pairs="adjacent", d_rotary=4, parallel=True, shared_norm=True,
    activation="gelu-tanh", qkv_bias=False, out_bias=False,
)  # fmt: skip
OPT = GPT2.replace(position_offset=2, activation="relu")
BLOOM = GPT2.replace(positions="alibi", embedding_norm=True, d_ff=96)
TABLE = "decoder.embedding.weight"
YARN = RopeScaling("yarn", 3.0, 6, beta_fast=3.0, beta_slow=0.5, attention_factor=0.8)
LINEAR = RopeScaling("linear", 2.0)
LLAMA3 = RopeScaling("llama3", 4.0, 8, low_freq_factor=1.0, high_freq_factor=3.0)

SHAPES: dict[str, tuple[str, TransformerConfig]] = {
    "gpt2": ("gpt2", GPT2.replace(dropout=0.3)),
    "gpt2 with an output of its own": ("gpt2", GPT2.replace(tie_embeddings=False, eos_id=7)),
    "gpt2 without a head": ("gpt2", GPT2.replace(head="none")),
    "gpt2 with classes": ("gpt2", GPT2.replace(head="classifier", activation="relu")),
    "llama": ("llama", LLAMA),
    "llama with biases": ("llama", LLAMA.replace(qkv_bias=True, out_bias=True, mlp_bias=True)),
    "llama with wide heads": ("llama", LLAMA.replace(d_head=10, tie_embeddings=True)),
    "llama stretched": ("llama", LLAMA.replace(rope_theta=500.0, rope_scaling=LLAMA3)),
    "llama stretched by yarn": ("llama", LLAMA.replace(rope_scaling=YARN)),
    "llama stretched evenly": ("llama", LLAMA.replace(rope_scaling=LINEAR)),
    "llama with classes": ("llama", LLAMA.replace(head="classifier")),
    "mistral": ("mistral", LLAMA.replace(windows=(5, 5, 5))),
    "qwen2": ("qwen2", LLAMA.replace(qkv_bias=True, windows=(0, 5, 5))),
    "qwen3": ("qwen3", LLAMA.replace(qk_norm=True)),
    "gpt_neox": ("gpt_neox", NEOX.replace(rope_scaling=LINEAR)),
    "gpt_neox in turn": (
        "gpt_neox", NEOX.replace(parallel=False, d_rotary=None, qkv_bias=False, out_bias=False),
    ),
    "gptj": ("gptj", GPTJ),
    "opt": ("opt", OPT),
    "opt with norms after": ("opt", OPT.replace(norm_position="post", final_norm=False)),
    "opt without biases": ("opt", OPT.replace(bias=False, qkv_bias=False, head="classifier")),
    "bloom": ("bloom", BLOOM),
    "bert": ("bert", BERT),
    "bert without a head": ("bert", BERT.replace(head="none")),
    "bert with classes": (
        "bert", BERT.replace(head="classifier", d_classifier=24, classifier_activation="tanh"),
    ),
}  # fmt: skip
AUTO: dict[str, Any] = {
    "language-model": hf.AutoModelForCausalLM,
    "masked-language-model": hf.AutoModelForMaskedLM,
    "classifier": hf.AutoModelForSequenceClassification,
    "none": hf.AutoModel,
}


def assert_they_agree(
    model: Transformer, folder: Path, ids: Tensor, keeps: Sequence[Tensor]
) -> None:
    """The reference and our own loader, given the folder, answer as the model does."""
    model.eval()
    head = model.config.head
    reference = AUTO[head].from_pretrained(folder, local_files_only=True).eval()
    loaded = load_checkpoint(folder)
    assert loaded.unused == ()
    for keep in keeps:
        real = ids.masked_fill(~keep, 0)
        given: dict[str, Any] = {"input_ids": real, "attention_mask": keep.long()}
        if model.config.kind == "decoder":
            given["position_ids"] = (keep.cumsum(-1) - 1).clamp(min=0)
        with torch.no_grad():
            theirs = reference(**given)
        expected = theirs.last_hidden_state if head == "none" else theirs.logits
        for each in (model, loaded.model):
            answer = trace(each, real, keep=keep).output
            rows = keep if answer.dim() == 3 else slice(None)
            assert difference(answer[rows], expected[rows]) <= 1e-5


@pytest.mark.parametrize(("family", "config"), SHAPES.values(), ids=SHAPES)
def test_the_reference_gives_the_same(
    family: str, config: TransformerConfig, tmp_path: Path
) -> None:
    """Padded on either side; a classifier that reads the first token finds none on the left."""
    model = shaken(config, torch.float32)
    folder = tmp_path / "out"
    assert export_checkpoint(folder, model) == family
    reads_first = config.head == "classifier" and config.pooling == "first"
    sides = ["right"] if reads_first else ["left", "right"]
    keeps = [keep_of_lengths([11, 7, 4], 11, side) for side in sides]
    assert_they_agree(model, folder, ids_of(3, 11, 29), keeps)


@pytest.mark.parametrize("config", [GPT2, LLAMA], ids=["gpt2", "llama"])
def test_a_trained_model_goes_out_with_its_tokenizer(
    config: TransformerConfig, tmp_path: Path
) -> None:
    tokenizer = word_tokenizer(["ab", "cd", "efg", "h"])
    config = config.replace(
        vocab_size=tokenizer.vocab_size,
        pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        more_eos_ids=(),
    )
    model = Transformer(config)
    ids = torch.tensor([tokenizer.ids("ab cd efg h ab"), tokenizer.ids("h h ab efg cd")])
    batch = Batch((ids[:, :-1],), ids[:, 1:])
    reports = list(train(model, lambda step: batch, TrainConfig(steps=6, lr=1e-2)))
    assert reports[-1].loss < reports[0].loss
    export_checkpoint(tmp_path / "out", model, tokenizer.to_json())
    assert_they_agree(model, tmp_path / "out", ids, [torch.ones_like(ids, dtype=torch.bool)])
    theirs: Any = hf.AutoTokenizer.from_pretrained(tmp_path / "out", local_files_only=True)
    assert theirs("ab h efg")["input_ids"] == tokenizer.ids("ab h efg")
    assert theirs.pad_token_id == tokenizer.pad_id
    assert load_checkpoint(tmp_path / "out").tokenizer == tokenizer.to_json()


def test_a_tokenizer_that_is_none_is_not_written(tmp_path: Path) -> None:
    for text in ["", "[]", "{}", '{"added_tokens": [1]}', "[" * 100_000]:
        with pytest.raises(CheckpointError, match="not one of a tokenizer"):
            export_checkpoint(tmp_path / "out", Transformer(GPT2), text)
        assert list(tmp_path.iterdir()) == [], text[:9]


def test_classes_keep_their_names(tmp_path: Path) -> None:
    model = shaken(GPT2.replace(head="classifier", n_classes=2), torch.float32)
    export_checkpoint(tmp_path / "out", model, classes=["bad", "good"])
    theirs = hf.AutoConfig.from_pretrained(tmp_path / "out")
    assert theirs.id2label == {0: "bad", 1: "good"}
    assert load_checkpoint(tmp_path / "out").run["classes"] == ["bad", "good"]
    with pytest.raises(CheckpointError, match="2 classes"):
        export_checkpoint(tmp_path / "other", model, classes=["one"])
    assert not (tmp_path / "other").exists()


NO_SHAPE = [
    (GPT2.replace(positions="sinusoidal"), "positions"),
    (GPT2.replace(head_bias=True), "head_bias"),
    (GPT2.replace(scale_embedding=True), "scale_embedding"),
    (GPT2.replace(head="classifier", pooling="first"), "pooling"),
    (LLAMA.replace(pairs="adjacent"), "pairs"),
    (LLAMA.replace(d_rotary=2), "d_rotary"),
    (LLAMA.replace(attention_cap=3.0), "attention_cap"),
    (LLAMA.replace(windows=(5, 6, 6)), "windows"),
    (BERT.replace(n_segments=0), "n_segments"),
    (BERT.replace(count_padding=False), "count_padding"),
    (BERT.replace(norm_position="pre"), "norm_position"),
    (SIZES.replace(kind="encoder-decoder"), "kind"),
]


def test_what_no_family_has_is_said_in_one_sentence(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for config, word in NO_SHAPE:
        with subtests.test(word):
            assert config.fault() is None
            assert exportable(config).family is None
            with pytest.raises(CheckpointError, match=word) as caught:
                export_checkpoint(tmp_path / "out", Transformer(config))
            assert ". " not in str(caught.value)
            assert list(tmp_path.iterdir()) == []


def test_an_export_takes_the_place_of_another(tmp_path: Path) -> None:
    for seed in (1, 2):
        model = Transformer(GPT2, seed=seed)
        export_checkpoint(tmp_path / "out", model)
    again = load_checkpoint(tmp_path / "out").model
    assert torch.equal(again.get_parameter(TABLE), model.get_parameter(TABLE))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == "gpt2"


WRITTEN = (
    "gpt2", "gpt2, bare", "llama, biases", "llama, classes", "mistral",
    "qwen2, windows from the second layer on", "qwen3", "gpt_neox", "gptj, classes", "opt",
    "bloom, classes",
)  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_opened_is_written_as_it_was(name: str, tmp_path: Path) -> None:
    """Every tensor, by the same name, bit by bit."""
    pair = open_pair(CASES[name], tmp_path / "in")
    assert export_checkpoint(tmp_path / "out", pair.ours.model) == pair.ours.family
    theirs: dict[str, Tensor] = {}
    for path in (tmp_path / "in").glob("*.safetensors"):
        theirs |= load_file(path)
    ours = load_file(tmp_path / "out" / "model.safetensors")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
