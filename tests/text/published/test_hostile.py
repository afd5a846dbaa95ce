"""Tokenizers made to do harm: each ends in one sentence, soon, and the next one still works."""

import json
import os
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from explorer.text import TextError, open_published, steps
from explorer.text.published.engine import MOST_PIECES
from explorer.text.published.process import MAX_CHILDREN
from tests.models.loading.mutations import changed_bytes, changed_json
from tests.text.published.conftest import Made, children, engine_of
from tests.text.published.hostile_tokenizers import (
    BPE,
    ENDLESS,
    FOLLOWS_THE_FILE,
    REFUSED,
    UNIGRAM,
    words,
)

AT_LAST = 30.0
"""Seconds of computing, the child's included, far above what the slowest machine needs."""

TEXT = "aaaa bbbb the cat sat, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"
PIECES = "spiece.model"


def written(folder: Path, name: str, content: str | bytes) -> Path:
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    # A class by whose settings the reference cuts would hide the parts of tokenizer.json.
    if name == "tokenizer.json":
        (folder / "tokenizer_config.json").write_text(FOLLOWS_THE_FILE)
    return folder


@contextmanager
def ended() -> Iterator[None]:
    """What is inside ends and takes, in this process, little memory."""
    before, begun = psutil.Process().memory_info().rss, computed()
    yield
    assert computed() - begun < AT_LAST
    assert psutil.Process().memory_info().rss - before < 100_000_000


def computed() -> float:
    """Seconds of this process, of its children that ended, and of those that are alive."""
    alive = (child.cpu_times() for child in children())
    return sum(os.times()[:4]) + sum(times.user + times.system for times in alive)


def refused(folder: Path, family: str = "gpt2") -> str:
    with ended(), pytest.raises(TextError) as caught:
        open_published(folder, family).encode(TEXT)
    return one_sentence(str(caught.value))


def one_sentence(text: str) -> str:
    assert len(text) < 300
    assert "\n" not in text
    assert re.fullmatch(r".*[^.]\.", text), text
    return text


@pytest.fixture(autouse=True, scope="module")
def the_next_tokenizer_works(made: Made) -> Any:
    """Whatever happened in these tests, a good tokenizer reads on."""
    good = open_published(made("bert"), "bert")
    yield
    assert [token.label for token in good.encode("the cat")] == ["[CLS]", "the", "cat", "[SEP]"]
    assert len(children()) <= MAX_CHILDREN


def test_a_file_that_cannot_be_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for number, (case, stored) in enumerate(REFUSED.items()):
        with subtests.test(case):
            sentence = refused(written(tmp_path / str(number), "tokenizer.json", stored))
            assert sentence.startswith("The tokenizer cannot ")


@pytest.mark.parametrize("case", ENDLESS)
def test_an_endless_file_ends(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child ends it by what it computed, however long the app would wait."""
    monkeypatch.setattr("explorer.text.published.process.GRACE", 60.0)
    written(tmp_path, "tokenizer.json", ENDLESS[case])
    sentence = ""
    with ended():
        try:
            assert len(open_published(tmp_path, "gpt2").encode(TEXT)) <= len(TEXT)
        except TextError as error:
            sentence = one_sentence(str(error))
    assert case != "words without end" or "takes too long" in sentence
    with ended():
        try:
            taken = steps(open_published(tmp_path, "gpt2"), "a" * 1_000)
            assert sum(len(step.pieces) for step in taken) <= MOST_PIECES
        except TextError as error:
            one_sentence(str(error))


def test_no_part_of_a_text_is_padded_cut_or_left_to_chance(tmp_path: Path) -> None:
    token = {"direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}
    cut = {"max_length": 1, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    fixed = token | {"strategy": {"Fixed": 2**40}}
    longest = token | {"strategy": "BatchLongest", "pad_to_multiple_of": 2**33}
    for padding in (fixed, longest, 3):
        written(tmp_path, "tokenizer.json", words(padding=padding, truncation=cut))
        assert engine_of(tmp_path, "gpt2").many_ids(["a b a"], True) == [[1, 2, 1]]
    merging = words(pre_tokenizer=None, model=BPE | {"dropout": 0.5})
    written(tmp_path, "tokenizer.json", merging)
    assert engine_of(tmp_path, "gpt2").many_ids(["ababab"] * 20, True) == [[2, 2, 2]] * 20


def huge(folder: Path) -> None:
    with open(folder / "vocab.txt", "wb") as file:  # a hole on the disk
        file.truncate(100_000_000)


def files(**content: str | bytes) -> Callable[[Path], None]:
    """Files by their names, a dot being two underscores."""

    def make(folder: Path) -> None:
        for name, data in content.items():
            written(folder, name.replace("__", "."), data)

    return make


def bpe(vocabulary: str, merges: str) -> Callable[[Path], None]:
    return files(vocab__json=vocabulary, merges__txt=merges)


def said(**settings: Any) -> Callable[[Path], None]:
    vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n"
    return files(vocab__txt=vocabulary, tokenizer_config__json=json.dumps(settings))


MILLIONS = "[UNK]\n[CLS]\n[SEP]\n" + "\n".join(map(str, range(1_200_000)))
LONG_PIECE = ModelProto(pieces=[{"piece": "a" * 513}], trainer_spec={"model_type": "BPE"})
OLDER: list[tuple[str, Callable[[Path], object], str]] = [
    ("bert", files(), "no tokenizer that can be opened"),
    ("bert", huge, "100 MB; at most 20 MB"),
    ("bert", lambda at: os.mkfifo(at / "tokenizer.json"), "has no readable tokenizer.json"),
    ("bert", lambda at: (at / "vocab.txt").symlink_to("/dev/zero"), "a link out of the folder"),
    ("bert", lambda at: (at / "vocab.txt").symlink_to(at / "gone"), "has no readable vocab.txt"),
    ("llama", files(tokenizer__model=pickle.dumps({"a": Path})), "is a pickle"),
    ("llama", files(tokenizer__model=b"pieces"), "is not a sentencepiece model"),
    ("llama", files(tokenizer__model=LONG_PIECE.SerializeToString()), "longer pieces than any"),
    ("bert", files(vocab__txt=b"\xff\xfe\n" * 9), "is not text"),
    ("bert", files(vocab__txt="a" * 10**7), r"has no \[UNK\]"),
    ("bert", files(vocab__txt=MILLIONS), "its vocabulary has"),
    ("esm", files(vocab__txt="a\n"), "as esm reads it is not known"),
    ("gpt2", bpe('{"a": 0}', "a b c\n"), "not a pair"),
    ("gpt2", bpe('{"a": 0}', "a b\n"), "does not describe a tokenizer"),
    ("gpt2", bpe('{"a": "0"}', ""), "no usable ID"),
    ("bert", said(do_lower_case="yes"), "neither true nor"),
    ("bert", said(cls_token=[1]), "not a short text"),
    ("bert", said(sep_token="a" * 10**6), "not a short"),
    ("bert", said(tokenizer_class="Jumanpp"), "as Jumanpp reads"),
    ("bert", said(do_basic_tokenize=False), "another splitting"),
]


def test_an_older_form_that_cannot_be_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for number, (family, make, sentence) in enumerate(OLDER):
        folder = tmp_path / str(number)
        folder.mkdir()
        make(folder)
        with subtests.test(number=number), pytest.raises(TextError, match=sentence):
            engine_of(folder, family)


SOUND = {"words": words(), "pairs": words(model=BPE), "pieces": words(model=UNIGRAM)}


@settings(max_examples=max(8, settings().max_examples // 3))
@pytest.mark.parametrize("kind", [*SOUND, PIECES])
@given(data=st.data())
def test_a_changed_file_reads_the_same_every_time_or_is_refused(
    kind: str, data: st.DataObject, made: Made, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With a token for each character at most, each where it stands in the text."""
    if kind == PIECES:
        whole = (made("t5") / PIECES).read_bytes()
        file, content, family = PIECES, data.draw(changed_bytes(whole, len(whole))), "t5"
    else:
        other = data.draw(changed_json(json.loads(SOUND[kind])))
        file, content, family = "tokenizer.json", json.dumps(other).encode(), "gpt2"
    folder = written(tmp_path_factory.mktemp("changed"), file, content)
    with ended():
        try:
            tokens = open_published(folder, family).encode(TEXT)
            assert engine_of(folder, family).encode(TEXT) == [*tokens], "in another process too"
        except TextError as error:
            one_sentence(str(error))
        else:
            spoken = [token for token in tokens if not token.special]
            assert all(0 <= token.start <= token.end <= len(TEXT) for token in spoken)
            assert len(spoken) <= len(TEXT) + 1


def test_settings_beside_pieces(made: Made, tmp_path: Path) -> None:
    written(tmp_path, PIECES, (made("t5") / PIECES).read_bytes())
    for values, sentence in (
        ({"extra_ids": 10**9}, "extra_ids"),
        ({"extra_ids": "many"}, "extra_ids"),
        ({"tokenizer_class": "NllbTokenizer"}, "as Nllb reads it is not known"),
    ):
        written(tmp_path, "tokenizer_config.json", json.dumps(values))
        with pytest.raises(TextError, match=sentence):
            engine_of(tmp_path, "t5")
    for side in ("source.spm", "target.spm"):
        written(tmp_path, side, (made("marian") / side).read_bytes())
    for vocabulary, sentence in (
        ('{"a": 0}', "no </s>"),
        ('{"</s>": 0, "<unk>": -4}', "no usable"),
    ):
        written(tmp_path, "vocab.json", vocabulary)
        with pytest.raises(TextError, match=sentence):
            engine_of(tmp_path, "marian")
