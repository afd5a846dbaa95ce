"""What a published model makes of a text: behind masks, classes by name, the next token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer import library, masks
from explorer.answers import ANSWERS_SHOWN, class_names, masks_in
from explorer.kept import forget
from explorer.library import Opened
from explorer.reading import ReadingError, read, read_batch
from models import trace
from tests import zoo
from tests.grids import grid


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = zoo.zoo(tmp_path_factory.mktemp("zoo"))
    zoo.classifier(made / "moods")
    return made


def open_folder(folder: Path) -> Opened:
    return library.open_entry(library.look_at(folder))


@pytest.fixture(scope="module")
def bert(folder: Path) -> Iterator[Opened]:
    opened = open_folder(folder / "bert")
    yield opened
    forget(opened)


@pytest.fixture(scope="module")
def gpt2(folder: Path) -> Opened:
    return open_folder(folder / "gpt2")


def whole(opened: Opened, text: str, pair: str = "") -> torch.Tensor:
    """What the model says at every position, from a pass that leaves nothing out."""
    tokens = opened.tokenizer.encode(text, pair or None)
    ids = torch.tensor([[token.id for token in tokens]])
    segments = torch.tensor([[token.segment for token in tokens]])
    return trace(opened.model, ids, segments=segments if opened.config.n_segments else None).output[
        0
    ]


def expected(opened: Opened, logits: torch.Tensor) -> list[tuple[str, Any]]:
    chances = torch.softmax(logits, -1).topk(ANSWERS_SHOWN)
    pairs = zip(chances.indices.tolist(), chances.values.tolist(), strict=True)
    return [
        (opened.tokenizer.label(index), pytest.approx(value, rel=1e-4)) for index, value in pairs
    ]


def test_without_a_mask_it_is_said_how_to_put_one(bert: Opened) -> None:
    answer = read(bert, "the cat is good").answer
    assert (answer.kind, answer.guesses) == ("mask", ())
    assert answer.note == "Put [MASK] in place of a word to see what it expects."


@grid(
    "pair, text",
    ["", "the dog [MASK] good"],
    ["the [MASK] is good", "[MASK]", "a [MASK] and a [MASK] ."],
)
def test_what_is_expected_behind_the_first_mask(bert: Opened, text: str, pair: str) -> None:
    answer = read(bert, text, pair).answer
    at = masks_in(bert, bert.tokenizer.encode(text, pair or None))
    assert len(at) == f"{text} {pair}".count("[MASK]")
    found = [(guess.label, guess.probability) for guess in answer.guesses]
    assert found == expected(bert, whole(bert, text, pair)[at[0]])
    several = f"There are {len(at)} masks; shown is the first."
    assert answer.note == (several if len(at) > 1 else "")


def test_masks_in_a_batch_are_those_of_each_text(bert: Opened) -> None:
    texts = ("the [MASK] is a good dog", "a good [MASK]")
    for text, reading in zip(texts, read_batch(bert, texts), strict=True):
        alone = read(bert, text).answer
        assert reading.answer.text == alone.text
        assert [g.label for g in reading.answer.guesses] == [g.label for g in alone.guesses]


def test_the_first_of_a_pair_is_read_beside_its_own_beginning(bert: Opened) -> None:
    """The second is longer: its places are no places in the first."""
    found = masks.batch(bert, read(bert, "the cat is a good dog", "a dog is a dog ? a good dog"))
    assert found.text == "the cat is"
    assert not found.pair


def test_a_pair_is_not_one_text(bert: Opened) -> None:
    answers = [read(bert, *texts).answer for texts in (("a [MASK]", "cat"), ("a [MASK] cat",))]
    assert answers[0].guesses != answers[1].guesses


def test_every_token_of_a_pair_is_found_in_what_was_typed(bert: Opened) -> None:
    found = read(bert, "The cat", "a  DOG? zz")
    assert found.typed == "The cat\na  DOG? zz"
    spans = {token.label: found.typed[token.start : token.end] for token in found.placed}
    assert spans == {"[CLS]": "", "[SEP]": "", "the": "The", "cat": "cat", "a": "a"} | {
        "dog": "DOG",
        "?": "?",
        "[UNK]": "zz",
    }
    (note,) = found.notes
    assert "“zz”" in note
    assert read(bert, "the cat").typed == "the cat"


def test_classes_are_called_as_the_config_calls_them(folder: Path) -> None:
    opened = open_folder(folder / "moods")
    assert class_names(opened) == ["gloomy", "cheerful"]
    answer = read(opened, "she is good").answer
    chances = torch.softmax(whole(opened, "she is good"), -1)
    assert answer.kind == "classes"
    found = {guess.label: guess.probability for guess in answer.guesses}
    assert found == pytest.approx({"gloomy": float(chances[0]), "cheerful": float(chances[1])})


@pytest.mark.parametrize("text", ["5", "5 17 3", "1 " * 32])
def test_the_next_token_is_that_of_a_whole_pass(gpt2: Opened, text: str) -> None:
    answer = read(gpt2, text).answer
    assert answer.kind == "next"
    found = [(guess.label, guess.probability) for guess in answer.guesses]
    assert found == expected(gpt2, whole(gpt2, text)[-1])


def test_only_what_is_shown_is_computed(gpt2: Opened, bert: Opened) -> None:
    assert read(gpt2, "5 17 3").trace.output.shape[1] == 1
    assert read(bert, "the [MASK] is good").trace.output.shape[1] == 1


def test_texts_of_one_length_are_read_together(gpt2: Opened) -> None:
    texts = ("5 17 3", "1 2 4")
    for text, reading in zip(texts, read_batch(gpt2, texts), strict=True):
        assert [g.label for g in reading.answer.guesses] == [
            g.label for g in read(gpt2, text).answer.guesses
        ]
    with pytest.raises(ReadingError, match="no padding token, so it reads one text at a time"):
        read_batch(gpt2, ("5 17 3", "1 2"))


def test_an_encoder_and_decoder_write(folder: Path) -> None:
    found = read(open_folder(folder / "t5"), "the cat sat on the mat")
    assert found.answer.kind == "text"
    assert found.target[1:] == found.written[:-1]
    assert [part.name for part in found.parts] == [
        "encoder.self_attn",
        "decoder.self_attn",
        "decoder.cross_attn",
    ]


@pytest.mark.parametrize("text", ["", "  ", "50", "one", "1 " * 33])
def test_what_cannot_be_read_is_refused(gpt2: Opened, text: str) -> None:
    with pytest.raises(ReadingError, match=r"\w\.$"):
        read(gpt2, text)
