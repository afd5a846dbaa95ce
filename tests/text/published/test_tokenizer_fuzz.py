"""Every key of a tokenizer's settings with other values: as the reference reads it, or refused."""

import json
import shutil
from pathlib import Path

import pytest

from explorer.text import open_published
from tests.text.published.conftest import Made
from tests.text.published.test_parity import llama3, neox
from tests.text.published.tokenizer_folders import FOLDERS
from tests.text.published.tokenizer_fuzz import CONFIG, DIFFERENT, changes_of, judge

WHOLE = ("gpt2", "bert", "roberta", "qwen2", "llama", "mistral", "gemma", "t5", "xlm-roberta")
PIECES = ("llama", "llama-legacy", "mistral", "mistral-unigram", "gemma", "t5", "pegasus")
OF_LANGUAGES = ("xlm-roberta", "camembert", "mbart", "mbart50", "marian")
OLDER = ("gpt2", "bert", "opt", *PIECES, *OF_LANGUAGES)
BASES = [*(f"{name}.json" for name in (*WHOLE, "camembert", "mbart")), *OLDER]
ALONE = {
    "neox": ("gpt_neox", neox, "GPTNeoXTokenizer"),
    "llama-3": ("llama", llama3, "PreTrainedTokenizerFast"),
    "phi": ("phi", llama3, "CodeGenTokenizer"),
}
"""Forms of a tokenizer.json that is made here: the family, and its class."""
EXTRA = "extra_special_tokens", ["<new>"]
SOME = (
    *("gpt2.json", "bert.json", "llama.json", "xlm-roberta.json", "bert", "opt", "llama-legacy"),
    *("mistral-unigram", "t5", "camembert", "mbart", "marian", *ALONE),
)
"""One of each kind of files, of which the quick run tries a few changes."""
STEP = 61


def faults(base: Path, family: str, folder: Path, step: int) -> list[str]:
    shutil.copytree(base, folder, dirs_exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": family}))
    wrong = []
    for number, change in enumerate([*changes_of(folder)][::step]):
        changed = shutil.copytree(folder, folder.parent / f"{folder.name} {number}")
        change.make(changed)
        outcome, words = judge(changed, family, change.key)
        shutil.rmtree(changed)
        if outcome == DIFFERENT:
            wrong.append(f"{change}: {words}")
    return wrong


A_FEW = [(name, STEP) for name in SOME]
ALL = [pytest.param(name, 1, marks=pytest.mark.thorough) for name in (*BASES, *ALONE)]


@pytest.mark.parametrize(("name", "step"), [*A_FEW, *ALL])
def test_no_setting_is_read_otherwise(name: str, step: int, made: Made, tmp_path: Path) -> None:
    if name in ALONE:
        base, (family, make, kind) = tmp_path / "alone", ALONE[name]
        base.mkdir()
        (base / "tokenizer.json").write_text(make().to_str())
        (base / CONFIG).write_text(json.dumps({"tokenizer_class": kind}))
        assert faults(base, family, tmp_path / "model", step) == []
        return
    family = FOLDERS[name.removesuffix(".json")][0]
    assert faults(made(name), family, tmp_path / "model", step) == []


def test_settings_that_are_not_followed_are_named(made: Made, tmp_path: Path) -> None:
    said = {"add_eos_token": True, "sp_model_kwargs": {"alpha": 1}, "fix_mistral_regex": True}
    folder = shutil.copytree(made("llama.json"), tmp_path / "model")
    unused = {"padding_side": "left", "not_known": None, "tokenizer_class": "LlamaTokenizer"}
    for values in (said | unused, unused):
        (folder / CONFIG).write_text(json.dumps(values))
        names = open_published(folder, "llama").unfollowed
        assert names == tuple(values)[:-3], names
    marian = shutil.copytree(made("marian"), tmp_path / "marian")
    (marian / CONFIG).write_text(json.dumps({EXTRA[0]: EXTRA[1]}))
    assert open_published(marian, "marian").unfollowed == EXTRA[:1]
