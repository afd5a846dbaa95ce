"""Out again: the reference library loads what we export and says the same."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file
from torch import Tensor

from explorer.catalog.shipped import SHIPPED
from explorer.text import word_tokenizer
from models.config import TransformerConfig
from models.families import FAMILIES
from models.families.effective_fields import effective_fields
from models.loading.checkpoint import CheckpointError, load_checkpoint
from models.loading.export import export_checkpoint, exportable
from models.model import Transformer
from tests.parity.cases import CASES, GROUPED, tiny
from tests.parity.families import LENGTH, Case, Pair, assert_close, compare, inputs_of, open_pair
from tests.parity.test_published_configs import ROTATIONS
from tests.tiny import reading, shaken

SIZES = TransformerConfig(
    vocab_size=29, d_model=24, n_layers=3, n_heads=4, d_ff=40, max_len=19, pad_id=0,
    scale_embedding=False, pooling="last", classifier_bias=False, n_classes=5,
)  # fmt: skip
GPT2 = SIZES.replace(
    positions="learned", activation="gelu-tanh", head_bias=False, tie_embeddings=True
)
LLAMA = SIZES.replace(
    positions="rotary", norm="rms", norm_eps=1e-6, activation="silu", gated=True,
    bias=False, qkv_bias=False, n_kv_heads=2,
)  # fmt: skip
BERT = SIZES.replace(
    kind="encoder", head="masked-language-model", positions="learned", count_padding=True,
    n_segments=2, embedding_norm=True, norm_position="post", norm_eps=1e-12, final_norm=False,
    activation="gelu", tie_embeddings=True, pooling="first", classifier_bias=True,
)  # fmt: skip
OPT = GPT2.replace(position_offset=2, activation="relu")
NEOX = SIZES.replace(
    positions="rotary", d_rotary=4, rope_theta=700.0, parallel=True, activation="gelu",
    head_bias=False,
)  # fmt: skip
GPTJ = SIZES.replace(
    positions="rotary", pairs="adjacent", d_rotary=4, parallel=True, shared_norm=True,
    activation="gelu-tanh", qkv_bias=False, out_bias=False,
)  # fmt: skip
OURS = {
    "gpt2": GPT2.replace(dropout=0.3),
    "llama": LLAMA.replace(qkv_bias=True, out_bias=True, mlp_bias=True),
    "mistral": LLAMA.replace(windows=(5, 5, 5)),
    "qwen2": LLAMA.replace(qkv_bias=True, windows=(0, 5, 5)),
    "qwen3": LLAMA.replace(qk_norm=True),
    "gpt_neox": NEOX,
    "gptj": GPTJ,
    "opt": OPT.replace(norm_position="post", final_norm=False),
    "bloom": GPT2.replace(positions="alibi", embedding_norm=True, d_ff=96),
    "bert": BERT,
}
"""A config of ours for every family that can be written."""
AUTO: dict[str, Any] = {
    "language-model": hf.AutoModelForCausalLM,
    "masked-language-model": hf.AutoModelForMaskedLM,
    "classifier": hf.AutoModelForSequenceClassification,
}

WRITTEN = (
    "gpt2", "gpt2, own output", "gpt2, bare", "gpt2, classes", "llama, biases",
    "llama, tied, wide heads", "llama, classes", "mistral",
    "qwen2, windows from the second layer on", "qwen3", "gpt_neox",
    "gpt_neox, one after the other", "gptj", "opt", "opt, post-norm, no biases", "opt, classes",
    "bloom", "bert, masked", "bert, bare", "bert, classes",
)  # fmt: skip
STRETCHED = ("llama3, newer", "linear, older", "yarn, its own turns", "yarn, its own factor")
CHOSEN = [
    *[CASES[name] for name in WRITTEN],
    *[case for case in ROTATIONS if case.name in STRETCHED],
    tiny("llama, three ends", "Llama", GROUPED, eos_token_id=[2, 3, 4]),
]


@pytest.mark.parametrize("case", CHOSEN, ids=str)
def test_what_was_opened_is_written_as_it_was(case: Case, tmp_path: Path) -> None:
    """Every tensor, bit by bit; and what the reference reads of the export is the same model."""
    before, after = tmp_path / "in", tmp_path / "out"
    ours = open_pair(case, before).ours
    assert export_checkpoint(after, ours.model) == ours.family
    theirs: dict[str, Tensor] = {}
    for path in before.glob("*.safetensors"):
        theirs |= load_file(path)
    written = load_file(after / "model.safetensors")
    if "cls.predictions.bias" in theirs:  # which has two names
        theirs["cls.predictions.decoder.bias"] = theirs.pop("cls.predictions.bias")
    assert written.keys() == theirs.keys() - set(ours.unused)
    assert all(torch.equal(written[name], theirs[name]) for name in written)
    assert effective_fields(load_checkpoint(after).config) == effective_fields(ours.config)
    reference: Any = case.reference.from_pretrained(after, local_files_only=True)
    reference.set_attn_implementation("eager")
    pair = Pair(case, reference.eval(), ours)
    compare(pair, inputs_of(pair, LENGTH, "right"))


def test_no_family_that_can_be_written_is_forgotten() -> None:
    able = {kind for kind, family in FAMILIES.items() if family.published is not None}
    assert {CASES[name].config.model_type for name in WRITTEN} == able
    assert OURS.keys() == able


@pytest.mark.parametrize("config", [GPT2, LLAMA], ids=["gpt2", "llama"])
def test_a_tokenizer_goes_out_with_its_model(config: TransformerConfig, tmp_path: Path) -> None:
    tokenizer = word_tokenizer(["ab", "cd", "efg", "h"])
    model = Transformer(reading(tokenizer, config))
    export_checkpoint(tmp_path / "out", model, tokenizer.to_json())
    theirs: Any = hf.AutoTokenizer.from_pretrained(tmp_path / "out", local_files_only=True)
    for text in ("ab h efg", "AB  é漢字 😀\nПривет", "<s> ab </s> <pad>", ""):
        assert theirs(text)["input_ids"] == tokenizer.ids(text)
    assert theirs.pad_token_id == tokenizer.pad_id
    opened: Any = load_checkpoint(tmp_path / "out")
    assert opened.tokenizer.text == tokenizer.to_json()


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


@pytest.mark.parametrize("name", ["induction", "induction-control", "induction-learned", "scaled"])
def test_an_equivalent_form_goes_out(name: str, tmp_path: Path) -> None:
    """The same logits in the reference and here, and no weight that either misses."""
    config = GPT2.replace(positions="sinusoidal", scale_embedding=True, d_model=32)
    config = config.replace(head_bias=True, tie_embeddings=False)
    shipped = name != "scaled"
    model = load_checkpoint(SHIPPED / name).model if shipped else shaken(config, torch.float32)
    before = {key: weight.clone() for key, weight in model.state_dict().items()}
    assert export_checkpoint(tmp_path / "out", model) == "gpt2"
    assert all(torch.equal(weight, before[key]) for key, weight in model.state_dict().items())
    reference, notes = hf.AutoModelForCausalLM.from_pretrained(
        tmp_path / "out", local_files_only=True, output_loading_info=True
    )
    assert not any(notes.values())
    again = load_checkpoint(tmp_path / "out")
    assert (again.unused, again.unfollowed) == ((), ())
    table = load_file(tmp_path / "out" / "model.safetensors")["transformer.wpe.weight"]
    if model.config.positions == "sinusoidal":
        assert torch.equal(table, model.get_buffer("decoder.positions.pe")[0])
    ids = torch.arange(3, 15)[None]
    with torch.no_grad():
        expected = model(ids)
        assert_close(again.model(ids), expected, "ours")
        assert_close(reference.eval()(ids).logits, expected, "logits")


def test_a_bias_that_no_norm_can_hold_is_refused(tmp_path: Path) -> None:
    """Two equal rows of the head cannot have two biases."""
    model = shaken(GPT2.replace(head_bias=True, tie_embeddings=False, d_model=32), torch.float32)
    weight = model.get_parameter("head.weight")
    for number in (weight[0].tolist(), [float("nan")] * 32):
        weight.data[1] = torch.tensor(number)
        with pytest.raises(CheckpointError, match="head_bias is False, here True"):
            export_checkpoint(tmp_path / "out", model)


NO_SHAPE = [
    (GPT2.replace(positions="relative"), "positions"),
    (GPT2.replace(head_bias=True), "head_bias"),  # more tokens than dimensions
    (BERT.replace(d_ff=0), "without feed-forward layers"),
    (GPT2.replace(scale_embedding=True), "scale_embedding"),
    (GPT2.replace(head="classifier", pooling="mean"), "pooling"),
    (LLAMA.replace(pairs="adjacent"), "pairs"),
    (LLAMA.replace(d_rotary=2), "d_rotary"),
    (LLAMA.replace(attention_cap=3.0), "attention_cap"),
    (LLAMA.replace(sink_logit=True), "sink_logit"),
    (LLAMA.replace(gated_attention=True), "gated_attention"),
    (LLAMA.replace(windows=(5, 6, 6)), "windows"),
    (BERT.replace(n_segments=0), "n_segments"),
    (BERT.replace(count_padding=False), "count_padding"),
    (BERT.replace(norm_position="pre"), "norm_position"),
    (SIZES.replace(kind="encoder-decoder"), "kind"),
    (SIZES.replace(n_heads=200, n_kv_heads=None, d_head=1, d_model=1), "positions"),
]


def test_what_no_family_has_is_one_sentence(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for config, word in NO_SHAPE:
        with subtests.test(word):
            assert config.fault() is None
            assert exportable(config).family is None
            with pytest.raises(CheckpointError, match=word) as caught:
                export_checkpoint(tmp_path / "out", Transformer(config))
            assert ". " not in str(caught.value)
            assert list(tmp_path.iterdir()) == []
