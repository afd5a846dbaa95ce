"""The matrix view in a real browser: what it says is what the tensor holds."""

import re
from typing import Any

import pytest
import torch
from playwright.sync_api import Locator, expect
from torch import Tensor

from explorer.components import wire
from explorer.components.matrix import encode
from explorer.text.number_format import three
from tests.browser.visiting import Visitor
from tests.components.conftest import OpenDemo, painted, told
from tests.components.samples import WORDS, attention, causal

COLOURS = """canvas => new Set(new Uint32Array(canvas.getContext("2d")
  .getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""
COLOURS_OF_THE_FIRST_COLUMN = """canvas => {
  const [left, band, cell] = canvas.closest(".view").dataset.cells.split(" ").map(Number);
  const pen = canvas.getContext("2d"), at = (r, c) => Array.from(pen.getImageData(
    Math.round(left + (c + 0.15) * cell), Math.round(band + (r + 0.15) * cell), 1, 1).data);
  return [at(0, 0), at(1, 0)].map(String);
}"""

COLOURS_IN = """(canvas, [row, column]) => {
  const [left, band, cell] = canvas.closest(".view").dataset.cells.split(" ").map(Number);
  const x = left + (column + 0.2) * cell, y = band + (row + 0.2) * cell, size = 0.6 * cell;
  const {data} = canvas.getContext("2d").getImageData(x, y, size, size);
  return new Set(new Uint32Array(data.buffer)).size;
}"""
BRACKETS = """canvas => {
  const [left, band, cell] = canvas.closest(".view").dataset.cells.split(" ").map(Number);
  const pen = canvas.getContext("2d"), scale = canvas.width / canvas.clientWidth;
  const read = (x, y) => pen.getImageData(Math.floor(x * scale), Math.floor(y * scale), 1, 1);
  const ink = (x, y) => String(read(x, y).data);
  const blank = ink(left - 3.5, band - 3.5), tokens = [0, 1, 2, 3, 4, 5, 6];
  return [
    tokens.filter(at => ink(left - 3.5, band + (at + 0.5) * cell) !== blank),
    tokens.filter(at => ink(left + (at + 0.5) * cell, band - 3.5) !== blank),
    [2, 3, 4].map(at => ink(left - 3.5, band + (at + 1) * cell) !== blank),
    ink(left - 3.5, band + 6 * cell) !== blank,
  ];
}"""


def of(visitor: Visitor, part: str, key: str = "matrix") -> Locator:
    return visitor.widget(key).locator(f".matrix {part}")


def walk(visitor: Visitor, *keys: str, key: str = "matrix") -> None:
    of(visitor, "canvas", key).focus()
    for press in keys:
        visitor.page.keyboard.press(press)


def test_a_cell_says_its_value_and_has_the_colour_of_theme_and_scale(open_demo: OpenDemo) -> None:
    visitor, weights = open_demo("matrix"), attention(12)
    for row, column in [(0, 0), (4, 1), (5, 2), (11, 11)]:
        said = f"{WORDS[row]} attends to {WORDS[column]}: {three(weights[row, column].item())}"
        expect(visitor.point("matrix", row, column)).to_have_text(said)
        expect(of(visitor, ".place")).to_have_text(f"query {row}, key {column}")
    expect(visitor.point("matrix", 2, 5)).to_have_text("sat is masked for small")
    expect(visitor.point("matrix", 3, -0.8 - 0.5)).to_have_text("query 3 of 12: black")

    exact = {(0, 0): "3,000", (0, 1): "0.300", (1, 0): "0.0500", (1, 1): "3.00e−8"}
    for (row, column), said in exact.items():
        expect(visitor.point("exact", row, column).locator(".value")).to_have_text(said)
        place = f"query {row + 3}, key {12 + 2 * column}"  # of a part, their own numbers
        expect(of(visitor, ".place", "exact")).to_have_text(place)

    expect(visitor.point("unknown", 5, 5)).to_have_text("sat attends to sat: not a number")
    expect(visitor.point("unknown", 5, 6)).to_have_text("on is masked for sat")
    expect(of(visitor, ".legend .absent", "unknown")).to_have_text(["not a number", "masked"])
    visitor.away()
    painted(visitor)
    canvas = of(visitor, "canvas", "unknown")
    plain, hatched = (canvas.evaluate(COLOURS_IN, [5, at]) for at in (4, 7))
    assert plain == 1 < hatched

    walk(visitor, "ArrowRight")
    view, sentence = of(visitor, "canvas"), of(visitor, ".sentence")
    assert "12 by 12" in str(view.get_attribute("aria-label"))
    expect(sentence).to_contain_text("<s> attends to <s>")
    visitor.click("matrix", 5, 2)
    visitor.away()
    before = view.bounding_box()
    expect(sentence).to_contain_text("sat attends to small")
    visitor.page.get_by_role("slider").press("ArrowRight")  # it is held through new values
    now = three(attention(12, 1)[5, 2].item())
    expect(sentence).to_contain_text(f"sat attends to small: {now}")
    assert view.bounding_box() == before
    walk(visitor, "ArrowDown", "ArrowRight")
    expect(sentence).to_contain_text("on attends to black")
    expect(of(visitor, ".spoken")).to_contain_text("on attends to black")
    walk(visitor, "Escape")
    expect(sentence).to_have_class("sentence idle")
    visitor.click("matrix", 5, 2)
    visitor.click("matrix", 5, 2)
    visitor.away()
    expect(sentence).to_have_class("sentence idle")

    for theme in ("light", "dark"):
        visitor.themed(theme)
        app = visitor.page.locator(".stApp")
        background = app.evaluate("app => getComputedStyle(app).backgroundColor")
        legend = of(visitor, ".bar", "difference").evaluate("bar => bar.style.background")
        stops = re.findall(r"rgb\([^)]*\)", legend)
        assert stops[len(stops) // 2] == background, "zero is not the page's background"
        down, across, inside, after = of(visitor, "canvas", "emoji").evaluate(BRACKETS)
        assert down == across == [2, 3, 4, 5], "the tokens of one character"
        assert all(inside), "the bracket has a gap"
        assert not after, "the bracket goes on"
    expect(visitor.point("emoji", 2, -1)).to_have_text("query 2 of 7: 😀 1/4 <0xF0>")
    by_picture, by_row, by_column, on_log = (
        of(visitor, "canvas", f"scaled{at}").evaluate(COLOURS_OF_THE_FIRST_COLUMN)
        for at in range(4)
    )
    assert by_picture[0] != by_picture[1]
    assert by_row[0] == by_row[1] == by_picture[0]
    assert by_column == by_picture, "the largest of the first column is that of the picture"
    assert on_log[0] == by_picture[0]
    assert on_log[1] not in (by_picture[1], by_picture[0])
    expect(of(visitor, ".legend", "scaled1")).to_contain_text("maximum of the row")
    expect(of(visitor, ".legend", "scaled3")).to_contain_text("weight, log≤ 0.0008")


def test_a_held_cell_and_a_hidden_column_are_told_and_come_back(open_demo: OpenDemo) -> None:
    visitor = open_demo("held")
    page, place = visitor.page, of(visitor, ".place")
    expect(place).to_have_text("query 3, key 1")
    walk(visitor, "ArrowDown", "ArrowDown", "ArrowDown")
    told(visitor, "((6, 1),), run 2")  # once the hand rests
    expect(place).to_have_text("query 6, key 1")
    walk(visitor, "Escape")
    told(visitor, "(None,), run 3")
    expect(place).to_have_text("")
    page.get_by_role("button", name="Hold the first").click()
    expect(place).to_have_text("query 0, key 0")
    label = -0.3 - 0.5  # over a column
    for cell, said in {
        (0, 1): "<s>, the: left out, the row's larger values reach its share",
        (1, 2): "small is hidden",
        (label, 2): "key 2 of 12: small, hidden; click to show it",
    }.items():
        expect(visitor.point("cut", *cell)).to_have_text(said)
    visitor.click("cut", label, 1)
    expect(page.get_by_text("hides 1", exact=True)).to_be_visible()
    walk(visitor, "ArrowDown", "h", key="cut")
    expect(page.get_by_text("hides 0", exact=True)).to_be_visible()


def test_any_size_is_painted_and_pictures_in_a_row_have_equal_cells(open_demo: OpenDemo) -> None:
    for size, notes in (("1", []), ("1024", ["label shown", "the maximum of its cells"])):
        visitor = open_demo("matrix", size)
        expect(visitor.point("matrix", 0, 0)).to_have_text("<s>0 attends to <s>0: 1.00")
        for note in notes:
            expect(of(visitor, ".notes")).to_contain_text(note)
        assert of(visitor, "canvas").evaluate(COLOURS) > 10
    visitor = open_demo("beside")  # of 15, 14 and 3 tokens
    for width in (1280, 1440, 760):
        visitor.sized(width)
        (_, alone), (tops, beside) = (places(visitor, key) for key in ("alone", "beside"))
        assert len(set(alone)) > 1
        assert len(set(beside)) == len(set(tops)) == 1, "at one height, as large as each other"
        assert 0 < beside[0] <= min(alone)


def places(visitor: Visitor, key: str) -> tuple[list[float], list[float]]:
    """How high the cells of three pictures begin, and how large they are."""
    views = [visitor.widget(f"{key}{at}").locator(".view.matrix") for at in range(3)]
    found = [str(view.get_attribute("data-cells")) for view in views]
    tops, sizes = zip(*(map(float, each.split()[1:3]) for each in found), strict=True)
    return [*tops], [*sizes]


def packed(values: Tensor, rows: list[str], columns: list[str], **how: Any) -> bytes:
    words = dict.fromkeys(("row", "column", "sentence", "masked", "unit", "title"), "")
    how = {"scale": "sequential", "allowed": None, "words": words, **how}
    return encode(values, rows, columns, **how)


def test_a_wrong_shape_scale_or_scaling_is_refused_in_words() -> None:
    one = torch.zeros(1, 1)
    with pytest.raises(ValueError, match="2 rows"):
        packed(torch.zeros(3, 3), ["a", "b"], ["c"])
    with pytest.raises(ValueError, match="sequential, diverging, mask"):
        packed(one, ["a"], ["b"], scale="rainbow")
    with pytest.raises(ValueError, match="all, row, column"):
        packed(one, ["a"], ["b"], scaling="sideways")


def test_a_mask_of_fewer_dimensions_is_spread_over_the_rows() -> None:
    message = packed(attention(4), WORDS[:4], WORDS[:4], allowed=causal(4)[2:3])
    assert wire.unpack(message)[1]["allowed"] == bytes([0b11101110, 0b11101110])
