"""What is taken away holds the numbers, whole, as a table, in words, and as on the screen."""

import csv
import io
import json
import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from matplotlib.lines import Line2D

from explorer.charts.figure_data import FigureData, TableData, as_csv, as_json, as_npz
from explorer.charts.figure_text import figure_text
from explorer.export import print_figure
from explorer.export.fonts import fallback_families, printable
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
    assert lines[0] == ["query ↓ reads key →", "0 ␣the", "1 =1+1", "2 $a$", "3 <b>"]
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


def test_npz_needs_no_pickle_and_a_column_may_have_any_name() -> None:
    whole = taken(allowed=CAUSAL, about={"model": "tiny"})
    with np.load(io.BytesIO(as_npz(whole)), allow_pickle=False) as found:
        assert np.array_equal(found["values"], whole.values.numpy())
        assert np.array_equal(found["allowed"], CAUSAL.numpy())
        assert tuple(found["rows"]) == whole.rows
        assert json.loads(str(found["about"]))["about"] == {"model": "tiny"}
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
        assert as_picture(table, "png")
        assert b"There are no rows." in as_picture(table, "svg")
        assert as_csv(table)
        assert json.loads(as_json(table))["columns"] == columns
        with np.load(io.BytesIO(as_npz(table)), allow_pickle=False) as found:
            assert set(found.files) == {"about", *(f"columns/{name}" for name in columns)}


def test_no_text_of_a_table_is_wider_than_its_column() -> None:
    wide = {f"column {at}": ["1", "decoder.self_attn"[: 2 * at]] * 30 for at in range(1, 9)}
    drawn = print_figure.draw(TableData(wide, "Edges"), (), print_figure.PAGE_WIDTH)
    drawn.draw_without_rendering()
    for cell in drawn.axes[0].tables[0].get_celld().values():
        text, box = (each.get_window_extent() for each in (cell.get_text(), cell))
        assert 0 < box.x0 < text.x0 < text.x1 < box.x1 < drawn.bbox.x1
        assert 0 < box.y0 < text.y0 < text.y1 < box.y1 < drawn.bbox.y1


@pytest.mark.filterwarnings("ignore:Glyph")
def test_every_picture_can_be_printed() -> None:
    nothing = FigureData(torch.full((2, 2), torch.nan), ("a", "b"), ("a", "b"), "nothing")
    for picture, kind in [
        (taken(1, 1), "png"),
        (taken(3, 30), "svg"),
        (taken(allowed=torch.zeros(4, 4, dtype=torch.bool)), "svg"),
        (nothing, "pdf"),
        (taken(scale="diverging", allowed=CAUSAL), "svg"),
    ]:
        file = as_picture(picture, kind)
        assert file.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind])
        assert len(file) < 2_000_000
        assert b"<script" not in file
    for word in ("␣the", "=1+1", "$a$", "&lt;b&gt;", "Layer 0, head $1$"):
        assert word in file.decode(), "words stay words"


def test_a_chart_in_words_says_its_largest_values_or_where_its_lines_begin_and_end() -> None:
    bars = {"layer": [{"encoding": {"x": {"field": "p"}, "y": {"field": "token"}}}]}
    step = {"x": {"field": "step"}, "y": {"field": "loss"}, "color": {"field": "run"}}
    curves = {"layer": [{"encoding": step}]}
    three: dict[str, Any] = {"token": ["be", "or", "to"], "p": [0.5, math.nan, 0.125]}
    two: dict[str, Any] = {"step": [10, 0, 0], "run": list("aab"), "loss": [0.5, 3.0, 2.0]}
    many: dict[str, Any] = {"step": [0] * 5, "run": list("abcde"), "loss": [1.0] * 5}
    parts: dict[str, Any] = {"part": ["a", "b"], "layer": [0, 1], "size": [-4, 3]}
    at_once = "; ".join(f"{run}: 1.00 at step 0" for run in "abc")
    nothing: list[dict[str, Any]] = [{}, {"step": []}, {"token": ["a"], "p": [None]}]
    rows: list[tuple[dict[str, Any], dict[str, Any] | None, str]] = [
        (three, bars, "T. The largest p: be: 0.500; to: 0.125."),
        (two, curves, "T. a: from 3.00 at step 0 to 0.500 at step 10; b: 2.00 at step 0."),
        (many, curves, f"T. {at_once}; and 2 more."),
        (parts, None, "T. The largest size: a: −4.00; b: 3.00."),
        *((each, bars, "T.") for each in nothing),
    ]
    for table, chart, said in rows:
        assert figure_text("T", table, chart) == said


VALUES = torch.tensor([[0.9, 0.09, 0.0], [0.2, 0.1, 0.0002], [0.0, 0.0, 0.0]])
NAMES = ("a", "b", "c")


def fullness(values: torch.Tensor = VALUES, **how: object) -> np.ma.MaskedArray:
    """How full the colour of every cell is, from -1 to 1."""
    figure = print_figure._figure(FigureData(values, NAMES, NAMES, "t", **how))  # type: ignore[arg-type]
    image = figure.axes[0].images[0]
    assert (image.norm.vmin, image.norm.vmax) == (-1.0 if "scale" in how else 0.0, 1.0)
    found = image.get_array()
    assert isinstance(found, np.ma.MaskedArray)
    return found


def test_colours_end_where_they_are_told_or_at_the_largest() -> None:
    assert fullness(top=1.0)[0, :2].tolist() == pytest.approx([0.9, 0.09])
    assert fullness()[0, :2].tolist() == pytest.approx([1.0, 0.1])
    assert fullness(top=0.5)[0, 0] == 1, "beyond the end is the fullest colour"
    assert fullness(-VALUES, scale="diverging")[0, :2].tolist() == pytest.approx([-1.0, -0.1])


def test_each_row_or_column_has_the_colours_to_itself() -> None:
    values = VALUES.numpy()
    for scaling, axis in [("row", 1), ("column", 0)]:
        largest = values.max(axis, keepdims=True)
        wanted = np.divide(values, largest, where=largest > 0, out=np.zeros((3, 3)))
        wanted = np.where(wanted > 0, np.maximum(wanted, print_figure.FAINTEST), 0)
        assert np.allclose(fullness(scaling=scaling, top=1.0), wanted), scaling


def test_a_log_scale_spreads_three_decades() -> None:
    values = torch.tensor([[1.0, 0.1, 0.01], [0.001, 0.0001, 0.0], [0.0, 0.0, 0.0]])
    found = fullness(values, log=True)
    assert found[0].tolist() == pytest.approx([1, 2 / 3, 1 / 3])
    assert found[1].tolist() == pytest.approx([print_figure.FAINTEST, print_figure.FAINTEST, 0])


def test_what_is_no_number_or_masked_has_no_colour_but_is_grey_or_hatched() -> None:
    values = VALUES.clone()
    values[2, 0] = torch.nan
    allowed = torch.ones(3, 3, dtype=torch.bool).tril()
    assert (fullness(values, allowed=allowed).mask == ~(allowed & values.isfinite()).numpy()).all()
    picture = print_figure._figure(FigureData(values, NAMES, NAMES, "t", allowed=allowed))
    drawn = [bars for bars in picture.axes[0].collections if len(bars.get_paths())]
    assert [bars.get_hatch() for bars in drawn] == ["/////", "/////", None]
    assert "Grey: not a number." in picture.get_supxlabel()


SCRIPTS = (
    *("注意力", "日本語カナ", "한국어", "क्षत्रिय", "বাংলা", "العربية", "עברית", "ภาษาไทย"),
    *("😀🎉👩\u200d👩\u200d👧❤\ufe0f", "𝕏∑", "\U00013000"),
)


def named(*labels: str, title: str = "t") -> FigureData:
    return FigureData(torch.zeros(len(labels), 3), labels, NAMES, title)


def test_no_letter_is_drawn_as_a_box() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of each letter that its fonts lack
        assert as_picture(named(*SCRIPTS, title=" ".join(SCRIPTS)), "png")
        assert as_picture(named("𝕏"), "png"), "only one of the common fonts has it"
    axes = print_figure._figure(named("a𓀀")).axes[0]
    assert axes.get_yticklabels()[0].get_text() == "a[U+13000]"
    assert printable("注意 क्ष 😀 a𓀀") == "注意 क्ष 😀 a[U+13000][U+E000]"


def test_letters_that_join_are_joined() -> None:
    wide = {}
    for label in ("क", "ष", "क्ष"):
        figure = print_figure._figure(named(label), fallback_families())
        figure.draw_without_rendering()
        wide[label] = figure.axes[0].get_yticklabels()[0].get_window_extent().width
    assert wide["क्ष"] < wide["क"] + wide["ष"]


def test_texts_of_an_svg_are_texts_where_systems_have_the_letters_else_outlines() -> None:
    common, rare = as_picture(named("café"), "svg"), as_picture(named("注意力"), "svg")
    assert "café" in common.decode()
    assert b"<text" not in rare
    assert rare == as_picture(named("注意力"), "svg"), "the same picture is the same file"


def test_hidden_keys_are_struck_through_and_no_others() -> None:
    struck = print_figure._figure(FigureData(VALUES, NAMES, NAMES, "t", hidden=(0, 2)))
    labels = struck.axes[0].get_xticklabels()
    lines = [each for each in struck.artists if isinstance(each, Line2D)]
    for place, line in zip((0, 2), lines, strict=True):
        box = labels[place].get_window_extent().transformed(struck.transFigure.inverted())
        across, down = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        assert (across >= box.x0).all()
        assert (across <= box.x1).all()
        assert down.tolist() == pytest.approx([box.y0, box.y1])
    assert not print_figure._figure(FigureData(VALUES, NAMES, NAMES, "t")).artists


def test_what_names_a_head_and_a_key_is_labelled_by_its_head() -> None:
    """Each head once, in its middle; the label of each key would be too small to be read."""
    columns = tuple(f"head {head}, key {key}" for head in range(3) for key in range(4))
    taken = FigureData(torch.eye(2, 12), ("a, b", "c"), columns, "t", column_name="head and key")
    axes = print_figure._figure(taken).axes[0]
    assert [each.get_text() for each in axes.get_xticklabels()] == ["head 0", "head 1", "head 2"]
    assert axes.get_xticks().tolist() == [2, 6, 10]
    assert [each.get_text() for each in axes.get_yticklabels()] == ["a, b", "c"]
    wide = FigureData(torch.eye(8, 32), ("a",) * 8, ("b",) * 32, "t")
    drawn = [print_figure._figure(wide), print_figure._figure(wide, (), 2.2)]
    aspects = [each.axes[0].get_aspect() for each in drawn]
    assert aspects == [1, "auto"], "its rows have room for their labels"
