"""The tokenizer that belongs to a folder: its own, bare numbers, or a sentence why none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.examples import examples_for
from explorer.text import TextError, Tokenizer
from explorer.text.numbers import Numbers
from explorer.tokenizing import TOKENIZER_FILES, tokenizer_of
from models.checkpoint import Checkpoint, load_checkpoint
from tests import zoo
from tests.shelf import shelf


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return zoo.zoo(tmp_path_factory.mktemp("zoo"))


def examples(found: Checkpoint) -> tuple[str, ...]:
    return examples_for(found.config, found.family, found.folder)


def test_ours_reads_in_this_process(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(load_checkpoint(shelf(tmp_path) / "letters"))
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer_of(load_checkpoint(tmp_path / "letters")) is tokenizer


def test_a_stranger_is_read_with_the_tokenizer_of_its_folder(folder: Path) -> None:
    tokenizer = tokenizer_of(load_checkpoint(folder / "bert"))
    read = tokenizer.encode("The cat", "a dog")
    assert [token.label for token in read] == "[CLS] the cat [SEP] a dog [SEP]".split()
    assert [token.segment for token in read] == [0, 0, 0, 0, 1, 1, 1]


def test_without_any_file_of_a_tokenizer_numbers_are_read(folder: Path) -> None:
    tokenizer = tokenizer_of(load_checkpoint(folder / "gpt2"))
    assert isinstance(tokenizer, Numbers)
    assert tokenizer.vocab_size == 50


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": 3}'])
def test_a_damaged_tokenizer_is_no_reason_for_numbers(tmp_path: Path, content: str) -> None:
    made = zoo.gpt2(tmp_path)
    (made / "tokenizer.json").write_text(content)
    with pytest.raises(TextError, match=r"\.$"):
        tokenizer_of(load_checkpoint(made))


def test_every_example_is_read_by_its_model(folder: Path, subtests: pytest.Subtests) -> None:
    for name in ["bert", "gpt2", "t5"]:
        with subtests.test(name=name):
            found = load_checkpoint(folder / name)
            tokenizer = tokenizer_of(found)
            for text in examples(found):
                tokens = tokenizer.encode(text)
                assert 1 < len(tokens) <= found.config.max_len
                known = found.config.src_vocab_size or found.config.vocab_size
                assert all(token.id < known for token in tokens)
                if found.config.head == "masked-language-model":
                    assert [token.id for token in tokens].count(tokenizer.mask_id or -1) == 1


def test_the_mask_is_written_as_the_family_writes_it(folder: Path) -> None:
    found = load_checkpoint(folder / "bert")
    for family, mask in {"bert": "[MASK]", "distilbert": "[MASK]", "roberta": "<mask>"}.items():
        assert all(mask in text for text in examples_for(found.config, family, found.folder))
    for family in ("xlm-roberta", "camembert"):
        assert all("<mask>" in text for text in examples_for(found.config, family, found.folder))


@pytest.mark.parametrize("size", [1, 2, 4, 1000])
def test_numbers_that_a_small_model_knows(tmp_path: Path, size: int) -> None:
    config = load_checkpoint(zoo.gpt2(tmp_path / "gpt2")).config.replace(vocab_size=size)
    (text,) = examples_for(config, "gpt2", tmp_path)
    assert all(int(number) < size for number in text.split())


def test_any_one_file_of_a_tokenizer_is_enough_to_ask_for_it(tmp_path: Path) -> None:
    for name in TOKENIZER_FILES:
        made = zoo.gpt2(tmp_path / name)
        (made / name).write_text(json.dumps("no tokenizer"))
        with pytest.raises(TextError):
            tokenizer_of(load_checkpoint(made))
