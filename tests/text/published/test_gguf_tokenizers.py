"""A tokenizer out of a GGUF file reads as the published one that was written into it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest
import sentencepiece
import tokenizers

from explorer.text import TextError, open_published
from explorer.text.published import tokenizer_files
from models.loading.checkpoint_tokenizer import chat_template, gguf_texts, tokenizer_of_folder
from tests.text.published.conftest import Made, reference_of
from tests.text.published.gguf_vocabularies import byte_level, many_texts, pieces, word_pieces
from tests.text.published.tokenizer_folders import FOLDERS, SPM, TEXTS

MANY = 500
WRITERS: dict[str, tuple[str, Callable[..., None], tuple[str, ...]]] = {
    "bert": ("bert", word_pieces, ()),
    "bert-cased": ("bert", word_pieces, ()),
    "gpt2": ("gpt2", byte_level, ("gpt-2",)),
    "qwen2": ("qwen2", byte_level, ("qwen2",)),
    "roberta": ("bert", byte_level, ("roberta-bpe",)),
    "t5": ("t5", pieces, ("spiece.model", "t5")),
    "xlm-roberta": ("bert", pieces, (SPM, "t5")),
    "llama": ("llama", pieces, ("tokenizer.model", "llama")),
    "gemma": ("gemma", pieces, ("tokenizer.model", "llama")),
}
"""The architecture of the file, and how the tokenizer of a folder is written into it."""
FOUND_IN_TEXTS: dict[str, list[str]] = {"llama": [], "gemma": ["<start_of_turn>", "<mask>"]}
"""Tokens that sentencepiece finds in a text, where it is the reference."""


def written(file: Path, name: str, made: Made, theirs: Any, **more: str) -> Path:
    """A GGUF file with the tokenizer alone."""
    architecture, write, how = WRITERS[name]
    writer = gguf.GGUFWriter(file, architecture)
    write(writer, theirs, made(name), *how)
    for key, value in more.items():
        writer.add_string(key.replace("__", "."), value)
    close(writer)
    return file


def close(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def library(file: Path) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_str(gguf_texts(file)["tokenizer.json"])


def expected_of(name: str, made: Made, theirs: Any, texts: list[str]) -> list[list[int]]:
    """Of sentencepiece's BPE the library itself is the reference; the other rewrites spaces."""
    if name not in ("llama", "gemma"):
        return list(theirs(texts)["input_ids"])
    model = sentencepiece.SentencePieceProcessor(model_file=str(made(name) / "tokenizer.model"))
    return [[theirs.bos_token_id, *ids] for ids in model.encode(texts)]


def test_tokens_that_were_added_later_are_found_first(made: Made, tmp_path: Path) -> None:
    added = ["<tool>", "at the", "  ", "quak"]
    theirs = reference_of(made, "qwen2")
    theirs.add_tokens(added)
    ours = library(written(tmp_path / "model.gguf", "qwen2", made, theirs))
    texts = many_texts(MANY, added)
    expected = theirs(texts)["input_ids"]
    for text, found, wanted in zip(texts, ours.encode_batch(texts), expected, strict=True):
        assert found.ids == wanted, repr(text)
    assert not any(found.special_tokens_mask[0] for found in ours.encode_batch(added))


@pytest.mark.parametrize("name", WRITERS)
def test_many_texts_are_read_as_by_the_reference(name: str, made: Made, tmp_path: Path) -> None:
    theirs, own_spaces = reference_of(made, name), name in ("llama", "gemma")
    file = written(tmp_path / "model.gguf", name, made, theirs)
    texts = many_texts(MANY, FOUND_IN_TEXTS.get(name, theirs.all_special_tokens))
    expected = expected_of(name, made, theirs, texts)
    for text, found, wanted in zip(texts, library(file).encode_batch(texts), expected, strict=True):
        assert found.ids == wanted, repr(text)
    ours = open_published(file, FOLDERS[name][0])
    core: Any = tokenizer_of_folder(file)
    assert ours.form == "model.gguf"
    assert ours.vocab_size == max(theirs.get_vocab().values()) + 1
    for role in ("pad", "bos", "eos", "unk", "cls", "sep", "mask"):
        assert getattr(ours, f"{role}_id") == getattr(theirs, f"{role}_token_id"), role
    for text in [text for text in TEXTS if not own_spaces or text[:1] != " "][:9]:
        assert core.encode(text) == ours.ids(text) == theirs(text)["input_ids"], text
        pair = ours.ids(text, "the cat")
        assert own_spaces or pair == theirs(text, "the cat")["input_ids"], text
    ids = ours.ids("the cat sat on the mat.")
    assert ours.decode(ids).strip() == "the cat sat on the mat."


def test_a_template_and_the_roles_are_those_of_the_file(made: Made, tmp_path: Path) -> None:
    theirs = reference_of(made, "qwen2")
    said = {"tokenizer__chat_template": "{% for m in messages %}{{ m }}{% endfor %}"}
    file = written(tmp_path / "model.gguf", "qwen2", made, theirs, **said)
    assert chat_template(tmp_path) == chat_template(file) == said["tokenizer__chat_template"]
    settings = json.loads(gguf_texts(file)["tokenizer_config.json"])
    assert settings["eos_token"] == "<|im_end|>"
    assert settings["bos_token"] is None


def test_texts_are_bounded(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "model.gguf", "gpt2", made, reference_of(made, "gpt2"))
    monkeypatch.setitem(tokenizer_files.LARGEST, "tokenizer.json", 1_000)
    with pytest.raises(TextError, match=r"^The tokenizer's tokenizer\.json has .* are read\.$"):
        open_published(file, "gpt2")


def test_a_vocabulary_without_capitals_reads_none(tmp_path: Path) -> None:
    for number, capital in enumerate(("the", "The")):
        writer = gguf.GGUFWriter(tmp_path / f"{number}.gguf", "bert")
        writer.add_tokenizer_model("bert")
        writer.add_token_list(["[UNK]", "[CLS]", "[SEP]", f"▁{capital}", "s"])
        writer.add_token_types([3, 3, 3, 1, 1])
        writer.add_unk_token_id(0)
        writer.add_bos_token_id(1)
        writer.add_sep_token_id(2)
        close(writer)
        ours = library(tmp_path / f"{number}.gguf")
        assert ours.encode("Thes").ids == [1, 3, 4, 2]
        assert ours.encode("THES").ids == ([1, 3, 4, 2] if number == 0 else [1, 0, 2])
