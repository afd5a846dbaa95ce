"""A growing sentence: each step's map is that of a pass over what stood there, and no more."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from explorer import library
from explorer.library import Opened
from explorer.parts import site
from explorer.passing import ids_of
from explorer.reading import ReadingError
from explorer.writing import MOST_WRITTEN, writes, writing
from models import trace
from tests import zoo

SHIPPED = ("translation", "shakespeare", "reverse", "induction")


def shipped(name: str) -> Opened:
    return library.open_model(name)


def test_every_step_is_a_pass_of_its_own(subtests: pytest.Subtests) -> None:
    for name in SHIPPED:
        with subtests.test(name=name):
            opened = shipped(name)
            assert writes(opened)
            grown = writing(opened, opened.example, 6)
            reading = grown.reading
            assert 0 < grown.steps <= 6
            for step in (1, grown.steps):
                for part in reading.parts:
                    rows, columns = grown.size(part.name, step)
                    stack = part.name.split(".")[0]
                    so_far = reading.target[:rows] if stack == "decoder" else reading.target[:1]
                    inputs = [ids_of([reading.source])] if reading.source else []
                    alone = trace(opened.model, *inputs, ids_of([so_far]))
                    seen = grown.weights(part.name, part.layers - 1, part.heads - 1, step)
                    own = alone.weights(site(part.name, part.layers - 1), head=part.heads - 1)[0]
                    torch.testing.assert_close(seen[:rows, :columns], own, rtol=1e-4, atol=1e-5)
                    assert seen[rows:].isnan().all()
                    assert seen[:, columns:].isnan().all()


def test_the_likeliest_is_what_is_written(subtests: pytest.Subtests) -> None:
    for name in SHIPPED:
        with subtests.test(name=name):
            opened = shipped(name)
            grown = writing(opened, opened.example, 6)
            assert [int(best) for best in grown.ids[:, 0]] == [token.id for token in grown.tokens]
            first = grown.guesses(0, opened.tokenizer.label)[0]
            assert first.label == grown.tokens[0].label


def test_a_reader_that_does_not_write_says_so(tmp_path: Path) -> None:
    for opened in (
        shipped("negation"),
        library.opened_from(zoo.bert(tmp_path / "bert"), "bert"),
    ):
        assert not writes(opened)
        with pytest.raises(ReadingError, match="only reads: choose one that writes"):
            writing(opened, opened.example, 3)


def test_a_full_model_writes_no_more(tmp_path: Path) -> None:
    opened = library.opened_from(zoo.gpt2(tmp_path / "gpt2"), "gpt2")
    text = "5 " * 200  # it came without a tokenizer
    with pytest.raises(ReadingError):
        writing(opened, text, MOST_WRITTEN)
    grown = writing(opened, "5 17", 10_000)
    assert 0 < grown.steps <= MOST_WRITTEN


def test_what_may_not_be_written_is_not_considered(
    small_models: Path, subtests: pytest.Subtests
) -> None:
    for name in ["letters", "translation"]:
        with subtests.test(name=name):
            opened = shipped(name)
            likeliest = int(writing(opened, opened.example, 3).ids[-1, 0])
            config = opened.config.replace(banned_ids=(likeliest,), first_id=5)
            model = copy.deepcopy(opened.model)
            model.config = config
            strict = replace(opened, config=config, model=model)
            grown = writing(strict, opened.example, 3)
            assert [int(best) for best in grown.ids[:, 0]] == [token.id for token in grown.tokens]
            for step in range(grown.steps):
                guesses = grown.guesses(step, str)
                assert str(likeliest) not in [guess.label for guess in guesses]
                assert sum(guess.probability for guess in guesses) <= 1 + 1e-5
            if opened.config.kind == "encoder-decoder":
                assert [guess.label for guess in grown.guesses(0, str)] == ["5"]
