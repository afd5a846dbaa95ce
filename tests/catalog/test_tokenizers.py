"""The tokenizer that belongs to a folder: its own, bare numbers, or a sentence why none."""

from pathlib import Path

import pytest

from explorer.catalog.model_descriptions import examples_for
from explorer.catalog.tokenizers import TypedTokenIds, tokenizer_of
from explorer.text import TextError, Tokenizer
from models.loading.checkpoint import load_checkpoint
from models.loading.checkpoint_tokenizer import TOKENIZER_FILES


def test_ours_reads_in_this_process(small_models: Path) -> None:
    tokenizer = tokenizer_of(load_checkpoint(small_models / "letters"))
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer_of(load_checkpoint(small_models / "letters")) is tokenizer


def test_a_stranger_is_read_with_the_tokenizer_of_its_folder_or_as_numbers(published: Path) -> None:
    read = tokenizer_of(load_checkpoint(published / "bert")).encode("The cat", "a dog")
    assert [token.label for token in read] == "[CLS] the cat [SEP] a dog [SEP]".split()
    assert [token.segment for token in read] == [0, 0, 0, 0, 1, 1, 1]
    numbers = tokenizer_of(load_checkpoint(published / "gpt2"))
    assert isinstance(numbers, TypedTokenIds)
    assert numbers.vocab_size == 50


def test_a_damaged_tokenizer_is_no_reason_for_numbers(published: Path, tmp_path: Path) -> None:
    damaged = [("tokenizer.json", content) for content in ("", "{", "[]", '{"model": 3}')]
    for name, content in [*damaged, *((name, '"no tokenizer"') for name in TOKENIZER_FILES)]:
        folder = tmp_path / f"{name} {len(content)}"
        folder.mkdir()
        for file in ("config.json", "model.safetensors"):
            (folder / file).hardlink_to(published / "gpt2" / file)
        (folder / name).write_text(content)
        with pytest.raises(TextError, match=r"\.$"):
            tokenizer_of(load_checkpoint(folder))


def test_every_example_is_read_by_its_model(published: Path) -> None:
    for name in ["bert", "gpt2", "t5"]:
        found = load_checkpoint(published / name)
        tokenizer = tokenizer_of(found)
        for text in examples_for(found.config, found.family, found.folder):
            tokens = tokenizer.encode(text)
            assert 1 < len(tokens) <= found.config.max_len
            known = found.config.src_vocab_size or found.config.vocab_size
            assert all(token.id < known for token in tokens)
            if found.config.head == "masked-language-model":
                assert [token.id for token in tokens].count(tokenizer.mask_id or -1) == 1
    for size in [1, 2, 4, 1000]:
        config = load_checkpoint(published / "gpt2").config.replace(vocab_size=size)
        (text,) = examples_for(config, "gpt2", published / "gpt2")
        assert all(int(number) < size for number in text.split())


def test_the_mask_is_written_as_the_family_writes_it(published: Path) -> None:
    found = load_checkpoint(published / "bert")
    for family, mask in {
        **dict.fromkeys(["bert", "distilbert"], "[MASK]"),
        **dict.fromkeys(["roberta", "xlm-roberta", "camembert"], "<mask>"),
    }.items():
        assert all(mask in text for text in examples_for(found.config, family, found.folder))
