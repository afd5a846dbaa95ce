"""What is taken away holds the numbers, whole, and no more than that."""

import csv
import io
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from explorer.export.figure_data import FigureData, TableData, as_csv, as_json, as_npz
from explorer.export.print_figure import as_picture

WORDS = ("␣the", "=1+1", "$a$", "<b>", "日", "\n", "", 'a,"b"')
CAUSAL = torch.ones(4, 4).tril().bool()


def taken(rows: int = 4, columns: int = 4, **how: object) -> FigureData:
    values = torch.rand(rows, columns, generator=torch.Generator().manual_seed(rows))
    labels = tuple(WORDS[at % len(WORDS)] for at in range(max(rows, columns)))
    return FigureData(values, labels[:rows], labels[:columns], "Layer 0, head $1$", **how)  # type: ignore[arg-type]


def test_a_table_comes_back_number_by_number() -> None:
    whole = taken(allowed=CAUSAL)
    lines = list(csv.reader(io.StringIO(as_csv(whole).decode("utf-8-sig"))))
    assert lines[0] == ["query ↓ key →", "0 ␣the", "1 =1+1", "2 $a$", "3 <b>"]
    for row, line in enumerate(lines[1:]):
        assert line[0] == f"{row} {whole.rows[row]}"
        seen = [torch.tensor(float(cell)) for cell in line[1:] if cell]
        assert seen == list(whole.values[row, : row + 1])
        assert line[row + 2 :] == [""] * (3 - row), "nobody may look ahead"


@given(some.lists(some.text(), min_size=1, max_size=5))
def test_no_label_is_a_formula(labels: list[str]) -> None:
    named = tuple(labels)
    table = FigureData(torch.zeros(len(named), len(named)), named, named, "x")
    lines = csv.reader(io.StringIO(as_csv(table).decode("utf-8-sig"), newline=""))
    assert not [cell for line in lines for cell in line if cell[:1] in ("=", "+", "-", "@")]


def test_json_holds_everything_and_knows_what_is_no_number() -> None:
    values = torch.tensor([[0.5, torch.nan], [torch.inf, 1 / 3]])
    about = {"model": "tiny", "query": "1"}
    said = json.loads(as_json(FigureData(values, ("a", "b"), ("c", "d"), "t", about=about)))
    assert said["values"][0] == [0.5, None]
    assert said["values"][1][0] is None
    assert torch.tensor(said["values"][1][1]) == values[1, 1]
    assert (said["query"], said["key"], said["about"]) == (["a", "b"], ["c", "d"], about)


def test_npz_needs_no_pickle() -> None:
    whole = taken(allowed=CAUSAL, about={"model": "tiny"})
    with np.load(io.BytesIO(as_npz(whole)), allow_pickle=False) as found:
        assert np.array_equal(found["values"], whole.values.numpy())
        assert np.array_equal(found["allowed"], CAUSAL.numpy())
        assert tuple(found["rows"]) == whole.rows
        assert json.loads(str(found["about"]))["about"] == {"model": "tiny"}


def test_a_column_may_have_any_name() -> None:
    names = ("about", "file", "allow_pickle", "columns", "title", "unit", "values")
    table = TableData({name: [place] for place, name in enumerate(names)}, "t", about={"unit": "x"})
    with np.load(io.BytesIO(as_npz(table)), allow_pickle=False) as found:
        said = json.loads(str(found["about"]))
        assert (said["title"], said["about"]) == ("t", {"unit": "x"})
        assert [found[f"columns/{name}"].item() for name in names] == [*range(len(names))]
    said = json.loads(as_json(table))
    assert said["columns"] == {name: [place] for place, name in enumerate(names)}
    assert (said["title"], said["about"]) == ("t", {"unit": "x"})


def test_a_table_of_nothing_is_exported_too() -> None:
    nothing: list[dict[str, list[float]]] = [{}, {"step": []}]
    for columns in nothing:
        table = TableData(columns, "nothing")
        for kind in ("png", "svg"):
            assert as_picture(table, kind)
        assert b"There are no rows." in as_picture(table, "svg")
        assert as_csv(table)
        assert json.loads(as_json(table))["columns"] == columns
        with np.load(io.BytesIO(as_npz(table)), allow_pickle=False) as found:
            assert set(found.files) == {"about", *(f"columns/{name}" for name in columns)}


@pytest.mark.filterwarnings("ignore:Glyph")
def test_every_picture_can_be_printed() -> None:
    nothing = FigureData(torch.full((2, 2), torch.nan), ("a", "b"), ("a", "b"), "nothing")
    for picture, kind in [
        (taken(1, 1), "png"),
        (taken(3, 90), "svg"),
        (taken(allowed=torch.zeros(4, 4, dtype=torch.bool)), "png"),
        (taken(scale="diverging", allowed=CAUSAL), "svg"),
        (nothing, "png"),
    ]:
        file = as_picture(picture, kind)
        assert file.startswith({"png": b"\x89PNG", "svg": b"<?xml"}[kind])
        assert len(file) < 2_000_000
        assert b"<script" not in file
    assert as_picture(taken(), "png") == as_picture(taken(), "png")
    svg = as_picture(taken(), "svg").decode()
    for word in ("␣the", "=1+1", "$a$", "&lt;b&gt;", "Layer 0, head $1$"):
        assert word in svg, "words stay words"
