"""What is taken away holds the numbers, whole, and no more than that."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from explorer.figures.paper import on_paper
from explorer.taken import Taken, as_csv, as_json, as_npz
from tests.grids import grid

WORDS = ("␣the", "=1+1", "$a$", "<b>", "日", "\n", "", 'a,"b"')


def taken(rows: int = 4, columns: int = 4, **how: object) -> Taken:
    values = torch.rand(rows, columns, generator=torch.Generator().manual_seed(rows))
    labels = tuple(WORDS[at % len(WORDS)] for at in range(max(rows, columns)))
    return Taken(values, labels[:rows], labels[:columns], "Layer 0, head $1$", **how)  # type: ignore[arg-type]


CAUSAL = torch.ones(4, 4).tril().bool()


def test_a_table_comes_back_number_by_number() -> None:
    given_values = taken(allowed=CAUSAL)
    lines = list(csv.reader(io.StringIO(as_csv(given_values).decode("utf-8-sig"))))
    assert lines[0] == ["query ↓ key →", "0 ␣the", "1 =1+1", "2 $a$", "3 <b>"]
    for row, line in enumerate(lines[1:]):
        assert line[0] == f"{row} {given_values.rows[row]}"
        for column, cell in enumerate(line[1:]):
            if CAUSAL[row, column]:
                assert torch.tensor(float(cell)) == given_values.values[row, column]
            else:
                assert cell == ""


@given(some.lists(some.text(), min_size=1, max_size=5))
def test_no_label_is_a_formula(labels: list[str]) -> None:
    named = tuple(labels)
    table = Taken(torch.zeros(len(named), len(named)), named, named, "x")
    lines = csv.reader(io.StringIO(as_csv(table).decode("utf-8-sig"), newline=""))
    assert not [cell for line in lines for cell in line if cell[:1] in ("=", "+", "-", "@")]


def test_json_holds_everything_and_knows_what_is_no_number() -> None:
    values = torch.tensor([[0.5, torch.nan], [torch.inf, 1 / 3]])
    table = Taken(values, ("a", "b"), ("c", "d"), "t", about={"model": "tiny"})
    said = json.loads(as_json(table))
    assert said["values"][0] == [0.5, None]
    assert said["values"][1][0] is None
    assert torch.tensor(said["values"][1][1]) == values[1, 1]
    assert (said["query"], said["key"], said["model"]) == (["a", "b"], ["c", "d"], "tiny")


def test_npz_needs_no_pickle() -> None:
    given_values = taken(allowed=CAUSAL, about={"model": "tiny"})
    with np.load(io.BytesIO(as_npz(given_values)), allow_pickle=False) as found:
        assert np.array_equal(found["values"], given_values.values.numpy())
        assert np.array_equal(found["allowed"], CAUSAL.numpy())
        assert tuple(found["rows"]) == given_values.rows
        assert json.loads(str(found["about"]))["model"] == "tiny"


@pytest.mark.filterwarnings("ignore:Glyph")
@grid(
    "kind, picture",
    ["png", "svg"],
    [
        taken(),
        taken(1, 1),
        taken(3, 90),
        taken(300, 300),
        taken(4, 4, allowed=torch.zeros(4, 4, dtype=torch.bool)),
        taken(4, 4, scale="diverging", allowed=CAUSAL),
        Taken(torch.full((2, 2), torch.nan), ("a", "b"), ("a", "b"), "nothing"),
    ],
)
def test_every_picture_can_be_printed(picture: Taken, kind: str) -> None:
    file = on_paper(picture, kind)
    start = {"png": b"\x89PNG", "svg": b"<?xml"}[kind]
    assert file.startswith(start)
    assert len(file) < 2_000_000
    if kind == "svg":
        assert b"<script" not in file


def test_an_svg_keeps_its_words_as_words() -> None:
    file = on_paper(taken(), "svg").decode()
    for word in ("␣the", "=1+1", "$a$", "&lt;b&gt;", "Layer 0, head $1$"):
        assert word in file


def test_the_same_picture_is_the_same_file() -> None:
    assert on_paper(taken(), "png") == on_paper(taken(), "png")
