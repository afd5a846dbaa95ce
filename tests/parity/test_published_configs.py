"""What a published config says beside its sizes: rotations, ends of texts, what is refused."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from models.loading.checkpoint import CheckpointError, load_checkpoint
from models.loading.inspection import inspect_folder
from tests.grids import grid
from tests.parity import families
from tests.parity.cases import CASES, GROUPED, SIZES, WINDOW, published
from tests.parity.families import Case, Pair, build_reference, compare, inputs_of, open_pair

LONG = GROUPED | {"max_position_embeddings": 96}
"""Longer than what the scalings call the training's length."""
LONGEST = 70
LINEAR = {"factor": 3.0}
LLAMA3 = {
    "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip
YARN = {"factor": 5.0, "original_max_position_embeddings": 12}
PARTLY: dict[str, Any] = {"partial_rotary_factor": 0.4}
ROTARY = "Llama Mistral Qwen2 Qwen3 Gemma Gemma2 GPTNeoX Phi StableLm Starcoder2".split()


def older(kind: str, scaling: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return LONG | {"rope_theta": 300.0, "rope_scaling": {"type": kind, **scaling}} | more


def newer(kind: str, scaling: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    parameters = {"rope_type": kind, "rope_theta": 300.0, **scaling}
    return LONG | {"rope_parameters": parameters} | more


def yarn(**more: Any) -> dict[str, Any]:
    return newer("yarn", YARN | more)


ROTATIONS = [
    published("θ beside the rest", "Llama", LONG | {"rope_theta": 300.0, "rope_scaling": None}),
    published("θ inside", "Llama", newer("default", {})),
    published("no θ at all", "Llama", LONG),
    published("linear, older", "Llama", older("linear", LINEAR)),
    published("linear, newer", "Gemma2", newer("linear", LINEAR, head_dim=10, **WINDOW)),
    published("llama3, older", "Llama", older("llama3", LLAMA3)),
    published("llama3, newer", "Llama", newer("llama3", LLAMA3)),
    published("yarn, older", "Qwen2", older("yarn", YARN)),
    published("yarn, newer", "Qwen3", newer("yarn", YARN, head_dim=10)),
    published("yarn, its own turns", "Llama", yarn(beta_fast=3.0, beta_slow=0.4)),
    published("yarn, ramp not rounded", "Llama", yarn(truncate=False)),
    published("yarn, its own factor", "Llama", yarn(attention_factor=0.7)),
    published("yarn, two scales", "Llama", yarn(mscale=0.7, mscale_all_dim=1.3)),
    published("yarn, factor from lengths", "Llama", yarn(factor=None)),
    published("yarn and a window", "Mistral", newer("yarn", YARN, **WINDOW)),
    published(
        "both ways", "Llama", newer("llama3", LLAMA3)
        | {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "rope_theta": 77.0}},
    ),
    published(
        "gpt_neox, older", "GPTNeoX", SIZES
        | {"rotary_pct": 0.4, "rotary_emb_base": 300}
        | {"rope_scaling": {"type": "linear", "factor": 2.0}},
    ),
    published(
        "gpt_neox, newer", "GPTNeoX", SIZES
        | {"rope_parameters": {"rope_type": "default", "rope_theta": 300.0} | PARTLY},
    ),
    published("gpt_neox, by default", "GPTNeoX", SIZES),
    published("phi3, newer", "Phi3", newer("default", PARTLY)),
]  # fmt: skip


@pytest.mark.parametrize("case", ROTATIONS, ids=str)
def test_turns_as_the_reference_does(case: Case, tmp_path: Path) -> None:
    pair = open_pair(case, tmp_path)
    compare(pair, inputs_of(pair, LONGEST, "left"))


SCALINGS = newer("llama3", LLAMA3), newer("yarn", YARN), older("yarn", YARN)


@grid("model, scaling", ROTARY, SCALINGS)
def test_the_length_of_the_training_may_stand_beside(
    model: str, scaling: dict[str, Any], tmp_path: Path
) -> None:
    case = published("beside", model, scaling | {"original_max_position_embeddings": 24})
    pair = open_pair(case, tmp_path)
    compare(pair, inputs_of(pair, LONGEST, "left"))


def saved(name: str, folder: Path, changes: Mapping[str, Any]) -> Path:
    """A folder of the case whose config says something else; ... leaves a value out."""
    if not (folder / "config.json").exists():
        build_reference(CASES[name]).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    values = json.loads((folder / "config.json").read_text()) | changes
    kept = {name: value for name, value in values.items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(kept))
    return folder


@pytest.mark.parametrize("name", ["gpt2", "llama", "bloom"])
def test_ends_at_the_first_of_several_ends(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    plain = open_pair(case, tmp_path / "plain")
    inputs = inputs_of(plain, 7)
    texts = families.reference_writing(plain, inputs, eos_token_id=None)[:, 7:]
    ends = [int(texts[0, 5]), int(texts[1, 3])]
    config = type(case.config).from_dict(case.config.to_dict() | {"eos_token_id": ends})
    pair = open_pair(Case(name, config, case.reference), tmp_path / "ends")
    assert pair.ours.config.generation.eos_ids == tuple(ends[:2])
    theirs = families.reference_writing(pair, inputs)
    ours = pair.ours.model.generate(inputs.ids, max_length=families.WRITTEN, greedy=True)
    assert ours.tolist() == theirs.tolist()
    assert any(end in row for row, end in zip(theirs[:, 7:].tolist(), ends, strict=False))


def test_what_is_asked_of_writing_and_not_done_is_named(tmp_path: Path) -> None:
    neutral = {"num_beams": 1, "repetition_penalty": 1.0, "bad_words_ids": [[3]]}
    assert inspect_folder(saved("gpt2", tmp_path / "plain", neutral)).unfollowed == ()
    asked = {"num_beams": 4, "repetition_penalty": 1.3, "no_repeat_ngram_size": [1]}
    rare = {"encoder_repetition_penalty": 5.0, "watermarking_config": {"bias": 9.0}}
    asked |= rare | {"bad_words_ids": [[3], [4, 5]]}
    folder = saved("gpt2", tmp_path / "asked", asked)
    assert set(inspect_folder(folder).unfollowed) == asked.keys()
    (folder / "generation_config.json").write_text(json.dumps(rare))
    assert set(inspect_folder(folder).unfollowed) == rare.keys()


def test_files_that_contradict_a_table_apart_are_named(tmp_path: Path) -> None:
    found = inspect_folder(saved("gpt2", tmp_path, {"tie_word_embeddings": False}))
    assert found.tied
    assert found.unfollowed == ("tie_word_embeddings",)
    assert load_checkpoint(found.folder).unfollowed == ("tie_word_embeddings",)


def test_a_body_whose_table_need_not_score_is_no_language_model(tmp_path: Path) -> None:
    for name in ("llama, bare", "llama, classes"):
        folder = saved(name, tmp_path / name, {"architectures": ...})
        with pytest.raises(CheckpointError, match=r"lacks lm_head\.weight"):
            load_checkpoint(folder)
    tied = {"architectures": ..., "tie_word_embeddings": True}
    assert load_checkpoint(saved("llama, bare", tmp_path / "tied", tied)).unfollowed == ()


def test_two_stacks_with_one_table_are_named_where_the_config_has_two(tmp_path: Path) -> None:
    for name in ("marian, bare", "bart, bare"):
        folder = saved(name, tmp_path / name, {"tie_word_embeddings": False})
        assert load_checkpoint(folder).unfollowed == ("forced_eos_token_id", "tie_word_embeddings")


def test_ends_that_are_absent_strange_or_shared(tmp_path: Path) -> None:
    """The family's own; none where the vocabulary lacks it; padding that ends texts is a token."""
    absent = {"bos_token_id": ..., "eos_token_id": ..., "pad_token_id": ...}
    config = load_checkpoint(saved("llama", tmp_path / "absent", absent)).config
    assert (config.pad_id, config.bos_id, config.generation.eos_ids) == (None, 1, (2,))
    # Tiny models name the ids of the large one they were cut from; no text has them.
    strange = {"bos_token_id": 50256, "eos_token_id": [50256, 3], "pad_token_id": -1}
    config = load_checkpoint(saved("gpt2", tmp_path / "strange", strange)).config
    assert (config.pad_id, config.bos_id, config.generation.eos_ids) == (None, None, (3,))
    config = load_checkpoint(saved("gpt2", tmp_path / "shared", {"pad_token_id": 2})).config
    assert (config.pad_id, config.generation.eos_ids) == (None, (2,))


def test_stored_positions_are_read(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """As the reference reads them; one stack's alone are too few for us."""
    for name, prefix in (("marian, bare", ""), ("pegasus", "model.")):
        stored = {f"{prefix}{stack}.embed_positions.weight" for stack in ("encoder", "decoder")}
        case, folder = CASES[name], tmp_path / name
        reference = build_reference(case)
        reference.get_parameter(min(stored)).data[3] += 0.1
        reference.save_pretrained(folder)
        with subtests.test(name):
            found = inspect_folder(folder)
            assert found.layouts.keys() >= stored
            assert found.unused == ()
            pair = Pair(case, reference, load_checkpoint(folder)).double()
            assert pair.ours.config.positions == "learned"
            compare(pair, inputs_of(pair, 7, "right"))
        tensors = load_file(folder / "model.safetensors")
        del tensors[max(stored)]
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        with subtests.test(name, stack="one"), pytest.raises(CheckpointError, match="lacks"):
            load_checkpoint(folder)
    reference = build_reference(CASES["pegasus"])
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        reference.to(dtype).save_pretrained(tmp_path)
        assert inspect_folder(tmp_path).config.positions == "sinusoidal"


SPELT_OUT: list[tuple[str, dict[str, Any]]] = [
    ("bart", {"hidden_size": 28, "num_hidden_layers": 3}),
    ("mbart", {"num_attention_heads": 2, "decoder_attention_heads": 2}),
    ("marian", {"hidden_size": 28, "num_hidden_layers": 1}),
    ("distilbert, classes", {"hidden_size": 28, "num_hidden_layers": 2, "num_attention_heads": 2}),
    ("t5", {"hidden_size": 28, "num_hidden_layers": 4, "num_attention_heads": 2, "head_dim": 5}),
    ("t5", {"num_hidden_layers": 2, "num_decoder_layers": None}),
    ("t5", {"feed_forward_proj": "gated-gelu", "dense_act_fn": "relu"}),
    ("mt5", {"feed_forward_proj": "gated-silu", "is_gated_act": False}),
    ("bert, classes", {"id2label": {"0": "one", "1": "other"}, "num_labels": 3}),
    ("xlm-roberta", {"vocab_size": ...}),
    ("gpt2", {"num_hidden_layers": 2}),
    ("gptj", {"num_attention_heads": 2}),
    ("gpt_bigcode", {"num_hidden_layers": 2}),
    ("gpt_neo", {"num_attention_heads": 2}),
    ("bloom", {"num_attention_heads": 2}),
    ("phi", {"head_dim": 8}),
    ("biogpt", {"do_layer_norm_before": False}),
    ("biogpt", {"enable_bias": False}),
    ("gpt2, classes", {"num_labels": 3}),
]
"""Values under other names or of another family, or beside those that they follow from."""


def test_what_is_spelt_out_twice_is_read_alike(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for number, (name, changes) in enumerate(SPELT_OUT):
        case = CASES[name]
        values = json.loads(case.config.to_json_string()) | changes
        values["architectures"] = [case.reference.__name__]
        said = {name: value for name, value in values.items() if value is not ...}
        config = type(case.config).from_dict(dict(said))
        with subtests.test(name, **changes):
            said_so = replace(case, config=config, published=said)
            pair = open_pair(said_so, tmp_path / str(number))
            compare(pair.double() if case.exact else pair, inputs_of(pair, 7))


REFUSED: list[tuple[str, dict[str, Any], str]] = json.loads(
    Path(__file__).with_name("refused_configs.json").read_text("utf-8")
)
"""A case, what its config says in place of its own values, and words of the refusal."""


def test_what_is_unsupported_is_refused_by_name(tmp_path: Path, subtests: pytest.Subtests) -> None:
    unsaid = {"rope_parameters": ..., "rope_scaling": ...}
    for number, (name, changes, words) in enumerate(REFUSED):
        sound = saved(name, tmp_path / name, {})
        folder = saved(name, shutil.copytree(sound, tmp_path / str(number)), unsaid | changes)
        with subtests.test(name, words=words), pytest.raises(CheckpointError, match=words):
            load_checkpoint(folder)
