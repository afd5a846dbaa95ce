"""The logit lens ends in what the model answers, and begins with what it was given."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from explorer import library
from explorer.analysis.changes import tokens_read
from explorer.analysis.lens import lens, ranks, streams
from explorer.answers import first_place
from explorer.library import Opened
from explorer.reading import read
from models import trace
from tests import zoo

SHIPPED = ("translation", "shakespeare", "negation", "reviews", "induction")


def ends_in_the_answer(opened: Opened, text: str) -> None:
    reading = read(opened, text)
    place = first_place(opened, tokens_read(reading))
    found = lens(reading, place)
    layers = opened.config.encoder_layers if reading.source and not reading.target else None
    assert len(found) == (layers or opened.config.n_layers) + 1
    ids = [torch.tensor([[t.id for t in side]]) for side in (reading.source, reading.target)]
    inputs = [each for each in ids if each.numel()]
    whole = trace(opened.model, *inputs, sites=("logits",))["logits"][0]
    expected = whole if whole.dim() == 1 else whole[place]
    torch.testing.assert_close(found[-1], expected, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(found[0], found[-1], atol=1e-3)


def test_the_last_row_is_the_answer(subtests: pytest.Subtests) -> None:
    for name in SHIPPED:
        with subtests.test(name=name):
            opened = library.open_model(name)
            ends_in_the_answer(opened, opened.example)


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_the_last_row_of_a_published_model_is_its_answer(tmp_path: Path, name: str) -> None:
    opened = library.opened_from(getattr(zoo, name)(tmp_path / name), name)
    ends_in_the_answer(opened, "5 17 3" if name == "gpt2" else "the cat was good")


def test_a_stream_without_its_norm_is_caught() -> None:
    """The planted mistake: reading the bare stream gives another answer."""
    opened = library.open_model("shakespeare")
    reading = read(opened, opened.example)
    bare = streams(reading)[-1][:, -1:]
    with torch.no_grad():
        wrong = opened.model.read(bare)[0, 0]
    right = lens(reading, len(reading.target) - 1)[-1]
    assert not torch.allclose(wrong, right, atol=1e-2)


def test_ranks_count_from_one() -> None:
    assert ranks(torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]]), 2) == [2, 2]
    assert ranks(torch.tensor([[1.0, 1.0]]), 0) == [1], "equals share the better place"
