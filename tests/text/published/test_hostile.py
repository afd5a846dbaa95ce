"""Tokenizers made to do harm: each ends in one sentence, soon, and the next one still works."""

from __future__ import annotations

import json
import os
import pickle
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from explorer.text import TextError, open_published, steps
from explorer.text.published.keep import MOST
from explorer.text.published.wire_of_steps import MOST_PLACES
from tests.text.published.bombs import BPE, ENDLESS, REFUSED, words
from tests.text.published.conftest import Made, children

SOON, AT_LAST = 2.5, 30.0
"""Seconds of computing, its child's included, and on the clock of a machine that is busy."""

TEXT = "aaaa bbbb the cat sat, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"


def written(folder: Path, name: str, content: str | bytes) -> Path:
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    (folder / name).write_bytes(data)
    return folder


@contextmanager
def soon() -> Iterator[None]:
    """What is inside takes little time and, in this process, little memory."""
    clock, before = time.monotonic(), psutil.Process().memory_info().rss
    computed = sum(os.times()[:4])
    yield
    assert sum(os.times()[:4]) - computed < SOON
    assert time.monotonic() - clock < AT_LAST
    assert psutil.Process().memory_info().rss - before < 100_000_000


def refused(folder: Path, family: str = "gpt2") -> str:
    with soon(), pytest.raises(TextError) as caught:
        open_published(folder, family).encode(TEXT)
    return one_sentence(str(caught.value))


def one_sentence(text: str) -> str:
    assert len(text) < 300
    assert "\n" not in text
    assert re.fullmatch(r".*[^.]\.", text), text
    return text


@pytest.fixture(autouse=True)
def the_next_tokenizer_works(made: Made) -> Any:
    """Whatever happened in a test, a good tokenizer reads on."""
    good = open_published(made("bert"), "bert")
    yield
    assert [token.label for token in good.encode("the cat")] == ["[CLS]", "the", "cat", "[SEP]"]
    assert len(children()) <= MOST


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_cannot_be_is_refused(tmp_path: Path, case: str) -> None:
    sentence = refused(written(tmp_path, "tokenizer.json", REFUSED[case]))
    assert sentence.startswith("The tokenizer cannot ")


@pytest.mark.parametrize("case", ENDLESS)
def test_a_file_that_never_ends_is_ended(tmp_path: Path, case: str) -> None:
    written(tmp_path, "tokenizer.json", ENDLESS[case])
    with soon():
        try:
            tokens = open_published(tmp_path, "gpt2").encode(TEXT)
        except TextError as error:
            sentence = one_sentence(str(error))
            assert case != "words without end" or "takes too long" in sentence
        else:
            assert case != "words without end"
            assert len(tokens) <= len(TEXT)


@pytest.mark.parametrize("case", ENDLESS)
def test_the_steps_of_a_file_that_never_ends_are_ended(tmp_path: Path, case: str) -> None:
    written(tmp_path, "tokenizer.json", ENDLESS[case])
    for text in (TEXT, "a" * 1_000):
        with soon():
            try:
                taken = steps(open_published(tmp_path, "gpt2"), text)
            except TextError as error:
                one_sentence(str(error))
            else:
                assert sum(len(step.pieces) for step in taken) <= MOST_PLACES


def test_a_text_that_grows_has_no_steps_without_end(tmp_path: Path) -> None:
    grows = {"type": "Replace", "pattern": {"String": "a"}, "content": "ab" * 1_000}
    parts: dict[str, Any] = {"pre_tokenizer": None, "model": BPE}
    written(tmp_path, "tokenizer.json", words(normalizer=grows, **parts))
    with soon(), pytest.raises(TextError) as caught:
        steps(open_published(tmp_path, "gpt2"), "a" * 1_000)
    one_sentence(str(caught.value))


@pytest.mark.parametrize(
    "padding",
    [
        {"strategy": {"Fixed": 2**40}},
        {"strategy": {"Fixed": 10**7}},
        {"strategy": "BatchLongest", "pad_to_multiple_of": 2**33},
        3,
    ],
)
def test_padding_and_truncation_are_dropped(tmp_path: Path, padding: Any) -> None:
    if isinstance(padding, dict):
        padding |= {"direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}
    cut = {"max_length": 1, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    written(tmp_path, "tokenizer.json", words(padding=padding, truncation=cut))
    assert open_published(tmp_path, "gpt2").ids("a b a") == [1, 2, 1]


def test_merging_is_never_left_to_chance(tmp_path: Path) -> None:
    parts: dict[str, Any] = {"pre_tokenizer": None, "model": BPE | {"dropout": 0.5}}
    written(tmp_path, "tokenizer.json", words(**parts))
    tokenizer = open_published(tmp_path, "gpt2")
    assert {tuple(tokenizer.ids("ababab")) for _ in range(20)} == {(2, 2, 2)}


def _huge(folder: Path) -> None:
    with open(folder / "vocab.txt", "wb") as file:  # a hole on the disk
        file.truncate(100_000_000)


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "tokenizer.json")


def _folder(folder: Path) -> None:
    (folder / "tokenizer.json").mkdir()


def _device(folder: Path) -> None:
    (folder / "tokenizer.json").symlink_to("/dev/zero")


def _nowhere(folder: Path) -> None:
    (folder / "vocab.txt").symlink_to(folder / "gone")


def _pickle(folder: Path) -> None:
    (folder / "tokenizer.model").write_bytes(pickle.dumps({"a": Path}))


def _vocabulary(text: str | bytes) -> Callable[[Path], None]:
    return lambda folder: void(written(folder, "vocab.txt", text))


def _bpe(vocabulary: str, merges: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        written(folder, "vocab.json", vocabulary)
        written(folder, "merges.txt", merges)

    return make


def _settings(**said: Any) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        written(folder, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
        written(folder, "tokenizer_config.json", json.dumps(said))

    return make


def void(_: object) -> None:
    return None


OLDER: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "nothing at all": ("bert", lambda folder: None, "no tokenizer that can be opened"),
    "a vocabulary of 100 MB": ("bert", _huge, "100 MB; at most 20 MB"),
    "a pipe": ("bert", _pipe, "has no readable tokenizer.json"),
    "a folder": ("bert", _folder, "has no readable tokenizer.json"),
    "a device": ("bert", _device, "a link out of the folder"),
    "a link to nowhere": ("bert", _nowhere, "has no readable vocab.txt"),
    "a pickle": ("llama", _pickle, "is a pickle"),
    "a vocabulary that is not text": ("bert", _vocabulary(b"\xff\xfe\n" * 9), "is not text"),
    "an empty vocabulary": ("bert", _vocabulary(""), r"has no \[CLS\]"),
    "one endless line": ("bert", _vocabulary("a" * 10**7), r"has no \[CLS\]"),
    "millions of lines": (
        "bert",
        _vocabulary("[UNK]\n[CLS]\n[SEP]\n" + "\n".join(map(str, range(1_200_000)))),
        "its vocabulary has",
    ),
    "a vocabulary of another family": ("esm", _vocabulary("a\n"), "as esm reads it is not known"),
    "merges with three parts": ("gpt2", _bpe('{"a": 0}', "a b c\n"), "not a pair"),
    "merges from elsewhere": ("gpt2", _bpe('{"a": 0}', "a b\n"), "does not describe a tokenizer"),
    "a list of tokens": ("gpt2", _bpe('["a"]', ""), "is not a JSON object"),
    "numbers that are texts": ("gpt2", _bpe('{"a": "0"}', ""), "no usable number"),
    "a setting of the wrong type": ("bert", _settings(do_lower_case="yes"), "neither true nor"),
    "a special token that is a list": ("bert", _settings(cls_token=[1]), "not a short text"),
    "a special token of a megabyte": ("bert", _settings(sep_token="a" * 10**6), "not a short"),
    "a special token that is not there": ("bert", _settings(sep_token="<gone>"), "has no <gone>"),
    "a class that is not known": ("bert", _settings(tokenizer_class="Jumanpp"), "as Jumanpp reads"),
    "another splitter": ("bert", _settings(do_basic_tokenize=False), "another splitting"),
}


@pytest.mark.parametrize("case", OLDER)
def test_an_older_form_that_cannot_be_is_refused(tmp_path: Path, case: str) -> None:
    family, make, sentence = OLDER[case]
    make(tmp_path)
    assert re.search(sentence, refused(tmp_path, family))


PIECES = "spiece.model"


@pytest.mark.parametrize("cut", [0, 1, 10, 0.5, 0.9, 0.999])
def test_a_cut_sentencepiece_model_is_refused(made: Made, tmp_path: Path, cut: float) -> None:
    whole = (made("t5") / PIECES).read_bytes()
    keep = cut if isinstance(cut, int) else int(len(whole) * cut)
    refused(written(tmp_path, PIECES, whole[:keep]), "t5")


def test_a_sentencepiece_model_with_any_byte_changed_does_no_harm(
    made: Made, tmp_path: Path
) -> None:
    whole = (made("t5") / PIECES).read_bytes()
    for place in range(0, len(whole), len(whole) // 12):
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        written(tmp_path, PIECES, bytes(changed))
        try:
            open_published(tmp_path, "t5").encode(TEXT)
        except TextError as error:
            one_sentence(str(error))


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"extra_ids": 10**9}, "extra_ids"),
        ({"extra_ids": "many"}, "extra_ids"),
        ({"tokenizer_class": "NllbTokenizer"}, "as Nllb reads it is not known"),
        ({"added_tokens_decoder": {"900": {"content": "new", "special": False}}}, "was added"),
    ],
)
def test_settings_beside_a_sentencepiece_model(
    made: Made, tmp_path: Path, said: dict[str, Any], sentence: str
) -> None:
    written(tmp_path, PIECES, (made("t5") / PIECES).read_bytes())
    written(tmp_path, "tokenizer_config.json", json.dumps(said))
    assert sentence in refused(tmp_path, "t5")


def test_a_marian_vocabulary_without_an_end_is_refused(made: Made, tmp_path: Path) -> None:
    for side in ("source.spm", "target.spm"):
        written(tmp_path, side, (made("marian") / side).read_bytes())
    written(tmp_path, "vocab.json", '{"a": 0}')
    assert "no </s>" in refused(tmp_path, "marian")
    written(tmp_path, "vocab.json", '{"</s>": 0, "<unk>": -4}')
    assert "no usable number" in refused(tmp_path, "marian")
