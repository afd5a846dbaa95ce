"""A printed picture has the colours of the screen, and strikes what is hidden there."""

import warnings

import numpy as np
import pytest
import torch
from matplotlib.lines import Line2D

from explorer.export import print_figure
from explorer.export.figure_data import FigureData
from explorer.export.fonts import fallback_families, printable
from explorer.export.print_figure import as_picture

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


def test_differences_keep_their_sign() -> None:
    assert fullness(-VALUES, scale="diverging")[0, :2].tolist() == pytest.approx([-1.0, -0.1])


def test_what_is_no_number_or_masked_has_no_colour() -> None:
    values = VALUES.clone()
    values[2, 0] = torch.nan
    allowed = torch.ones(3, 3, dtype=torch.bool).tril()
    assert (fullness(values, allowed=allowed).mask == ~(allowed & values.isfinite()).numpy()).all()


def test_what_is_no_number_is_grey_and_what_is_masked_is_hatched() -> None:
    values = VALUES.clone()
    values[2, 0] = torch.nan
    allowed = torch.ones(3, 3, dtype=torch.bool).tril()
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
        for kind in ("png", "svg"):
            assert as_picture(named(*SCRIPTS, title=" ".join(SCRIPTS)), kind)
        assert as_picture(named("𝕏"), "png"), "only one of the common fonts has it"


def test_a_letter_that_no_font_has_is_its_code_point() -> None:
    figure = print_figure._figure(named("a𓀀"))
    assert figure.axes[0].get_yticklabels()[0].get_text() == "a[U+13000]"
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


def test_the_rows_of_a_wide_matrix_have_room_for_their_labels() -> None:
    taken = FigureData(torch.eye(8, 32), ("a",) * 8, ("b",) * 32, "t")
    assert print_figure._figure(taken).axes[0].get_aspect() == 1
    assert print_figure._figure(taken, (), 2.2).axes[0].get_aspect() == "auto"
