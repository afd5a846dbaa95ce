"""What a published config says beside its sizes: ends of texts, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.checkpoint import CheckpointError, inspect, load_checkpoint
from models.generation import written
from tests.parity.comparing import WRITTEN, reference_writing
from tests.parity.decoders import BLOOM, GPT2, GPTJ, GROUPED, NEO, OPT, SIZES, decoder
from tests.parity.families import Case, build_reference, inputs_of, open_pair

CASES = [
    decoder("gpt2", "GPT2", GPT2, head="LMHeadModel"),
    decoder("llama", "Llama", GROUPED),
    decoder("mistral", "Mistral", GROUPED),
    decoder("gemma", "Gemma", GROUPED, head_dim=10),
    decoder("gptj", "GPTJ", GPTJ),
    decoder("gpt_neox", "GPTNeoX", SIZES),
    decoder("opt", "OPT", OPT),
    decoder("bloom", "Bloom", BLOOM),
    decoder("gpt_neo", "GPTNeo", NEO),
    decoder("phi", "Phi", GROUPED),
    decoder("stablelm", "StableLm", GROUPED),
]
BY_NAME = {case.name: case for case in CASES}


def saved(case: Case, folder: Path, changes: dict[str, Any]) -> Path:
    """A folder of the case whose config says something else; ... leaves a value out."""
    build_reference(case).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    values = json.loads((folder / "config.json").read_text()) | changes
    kept = {name: value for name, value in values.items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(kept))
    return folder


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ends_at_the_first_of_several_ends(case: Case, tmp_path: Path) -> None:
    plain = open_pair(case, tmp_path / "plain")
    inputs = inputs_of(plain, 7)
    texts = reference_writing(plain, inputs, eos_token_id=None)[:, 7:]
    ends = [int(texts[0, 5]), int(texts[1, 3])]
    config = type(case.config).from_dict(case.config.to_dict() | {"eos_token_id": ends})
    pair = open_pair(Case(case.name, config, case.reference), tmp_path / "ends")
    assert (pair.ours.config.eos_id, pair.ours.config.more_eos_ids) == (ends[0], (ends[1],))
    theirs = reference_writing(pair, inputs)
    ours = written(pair.ours.model, inputs.ids, max_length=WRITTEN, greedy=True)
    assert ours.tolist() == theirs.tolist()
    assert any(end in row for row, end in zip(theirs[:, 7:].tolist(), ends, strict=False))


def test_what_is_asked_of_writing_and_not_done_is_named(tmp_path: Path) -> None:
    neutral = {"num_beams": 1, "repetition_penalty": 1.0, "bad_words_ids": [[3]]}
    assert inspect(saved(BY_NAME["gpt2"], tmp_path / "plain", neutral)).unfollowed == ()
    folder = saved(BY_NAME["gpt2"], tmp_path / "asked", {"bad_words_ids": [[3], [4, 5]]})
    asked = {"num_beams": 4, "repetition_penalty": 1.3, "no_repeat_ngram_size": [1]}
    (folder / "generation_config.json").write_text(json.dumps(asked))
    assert inspect(folder).unfollowed == (*asked, "bad_words_ids")


def test_files_that_contradict_a_table_apart_are_named(tmp_path: Path) -> None:
    folder = saved(BY_NAME["gpt2"], tmp_path, {"tie_word_embeddings": False})
    found = inspect(folder)
    assert found.tied
    assert found.unfollowed == ("tie_word_embeddings",)


def test_absent_ends_are_those_of_the_family(tmp_path: Path) -> None:
    ids = {"bos_token_id": ..., "eos_token_id": ..., "pad_token_id": ...}
    config = load_checkpoint(saved(BY_NAME["llama"], tmp_path, ids)).config
    assert (config.pad_id, config.bos_id, config.eos_id) == (None, 1, 2)


def test_ends_that_the_vocabulary_lacks_are_none(tmp_path: Path) -> None:
    """Tiny models name the ids of the large one they were cut from; no text has them."""
    ids = {"bos_token_id": 50256, "eos_token_id": [50256, 3], "pad_token_id": -1}
    config = load_checkpoint(saved(BY_NAME["gpt2"], tmp_path, ids)).config
    assert (config.pad_id, config.bos_id, config.eos_id) == (None, None, 3)
    assert config.more_eos_ids == ()


def test_padding_that_ends_texts_is_a_token(tmp_path: Path) -> None:
    config = load_checkpoint(saved(BY_NAME["gpt2"], tmp_path, {"pad_token_id": 2})).config
    assert (config.pad_id, config.eos_id) == (None, 2)


REFUSED = {
    "gpt2 that looks at another text": ("gpt2", {"add_cross_attention": True}),
    "gpt2 with unscaled scores": ("gpt2", {"scale_attn_weights": False}),
    "gpt2 with scores scaled by layer": ("gpt2", {"scale_attn_by_inverse_layer_idx": True}),
    "gpt2 with another activation": ("gpt2", {"activation_function": "quick_gelu"}),
    "llama in four bits": ("llama", {"quantization_config": {"load_in_4bit": True}}),
    "mistral with a window by layer": ("mistral", {"layer_types": ["sliding_attention"] * 3}),
    "gemma that looks ahead": ("gemma", {"use_bidirectional_attention": True}),
    "gptj without rotation": ("gptj", {"rotary_dim": None}),
    "opt with a narrow embedding": ("opt", {"word_embed_proj_dim": 32}),
    "opt with norms without gains": ("opt", {"layer_norm_elementwise_affine": False}),
    "mistral with a window of nothing": ("mistral", {"sliding_window": 0}),
    "gpt_neo with a window of nothing": ("gpt_neo", {"window_size": 0}),
    "gpt_neo with another kind": ("gpt_neo", {"attention_types": [[["sparse"], 3]]}),
    "gpt_neo with too few layers": ("gpt_neo", {"attention_types": [[["local"], 2]]}),
    "gpt_neo with no layers": ("gpt_neo", {"attention_types": 3}),
    "gpt_neo with very many layers": ("gpt_neo", {"attention_types": [[["local"], 10**9]]}),
    "phi with normed queries": ("phi", {"qk_layernorm": True}),
    "stablelm with normed queries": ("stablelm", {"qk_layernorm": True}),
    "bloom with its stream normed": ("bloom", {"apply_residual_connection_post_layernorm": True}),
}


@pytest.mark.parametrize(("name", "changes"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_supported_is_refused_by_name(
    name: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match=next(iter(changes))):
        load_checkpoint(saved(BY_NAME[name], tmp_path, changes))
