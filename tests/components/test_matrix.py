"""The matrix view in a real browser: what it says is what the tensor holds."""

import re
from typing import Any

import pytest
import torch
from playwright.sync_api import Locator, expect
from torch import Tensor

from explorer.components import wire
from explorer.components.matrix import encode, room
from explorer.text.number_format import three
from tests.browser.visiting import Visitor
from tests.components.conftest import OpenDemo
from tests.components.samples import STRANGE, WORDS, attention, causal
from tests.served import wait_until
from tests.text.test_number_format import TIES

KEY = "matrix"
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


def of(visitor: Visitor, part: str) -> Locator:
    return visitor.page.locator(f".matrix {part}")


def walk(visitor: Visitor, *keys: str) -> None:
    of(visitor, "canvas").focus()
    for key in keys:
        visitor.page.keyboard.press(key)


def test_a_cell_says_the_value_of_the_tensor_and_a_label_its_token(open_demo: OpenDemo) -> None:
    visitor = open_demo(KEY, "words")
    weights = attention(12)
    for row, column in [(0, 0), (4, 1), (5, 2), (11, 11)]:
        sentence = visitor.point(KEY, row, column)
        said = f"{WORDS[row]} attends to {WORDS[column]}: {three(weights[row, column].item())}"
        expect(sentence).to_have_text(said)
        expect(of(visitor, ".place")).to_have_text(f"query {row}, key {column}")
    expect(visitor.point(KEY, 2, 5)).to_have_text("sat is masked for small")
    expect(visitor.point(KEY, 3, -0.8 - 0.5)).to_have_text("query 3 of 12: black")


def test_beside_a_large_number_small_ones_are_said_as_they_are(open_demo: OpenDemo) -> None:
    visitor = open_demo(KEY, "exact")
    for (row, column), said in {
        (0, 0): "3,000",
        (0, 1): "0.300",
        (1, 0): "0.0500",
        (1, 1): "3.00e−8",
    }.items():
        expect(visitor.point(KEY, row, column).locator(".value")).to_have_text(said)
        place = f"query {row + 3}, key {12 + 2 * column}"  # of a part, their own numbers
        expect(of(visitor, ".place")).to_have_text(place)


@pytest.mark.parametrize("kind", ["matrix", "cells"])
def test_a_number_is_rounded_as_a_sentence_of_the_page_rounds_it(
    open_demo: OpenDemo, kind: str
) -> None:
    visitor = open_demo(kind, "ties")
    for place, value in enumerate(TIES):
        shown = visitor.point(kind, *divmod(place, 3)).locator(".value")
        expect(shown).to_contain_text(three(torch.tensor(value).item()))


def test_a_cell_is_held_through_new_values_walked_from_and_let_go(open_demo: OpenDemo) -> None:
    visitor = open_demo(KEY, "words")
    view, sentence = visitor.page.locator(".view.matrix"), of(visitor, ".sentence")
    assert "12 by 12" in str(of(visitor, "canvas").get_attribute("aria-label"))
    walk(visitor, "ArrowRight")
    expect(sentence).to_contain_text("<s> attends to <s>")
    before = view.bounding_box()
    visitor.click(KEY, 5, 2)
    visitor.away()
    expect(sentence).to_contain_text("sat attends to small")
    visitor.page.get_by_role("slider").press("ArrowRight")
    now = three(attention(12, 1)[5, 2].item())
    expect(sentence).to_contain_text(f"sat attends to small: {now}")
    assert view.bounding_box() == before
    walk(visitor, "ArrowDown", "ArrowRight")
    expect(sentence).to_contain_text("on attends to black")
    expect(of(visitor, ".spoken")).to_contain_text("on attends to black")
    walk(visitor, "Escape")
    expect(sentence).to_have_class("sentence idle")
    visitor.click(KEY, 5, 2)
    visitor.click(KEY, 5, 2)
    visitor.away()
    expect(sentence).to_have_class("sentence idle")


def test_a_held_cell_is_told_once_the_hand_rests_and_comes_back(open_demo: OpenDemo) -> None:
    visitor = open_demo(KEY, "held")
    page, place = visitor.page, of(visitor, ".place")
    expect(place).to_have_text("query 3, key 1")
    walk(visitor, "ArrowDown", "ArrowDown", "ArrowDown")
    expect(page.get_by_text("told ((6, 1),), run 2")).to_be_visible()
    expect(place).to_have_text("query 6, key 1")
    walk(visitor, "Escape")
    expect(page.get_by_text("told (None,), run 3")).to_be_visible()
    expect(place).to_have_text("")
    page.get_by_role("button", name="Hold the first").click()
    expect(place).to_have_text("query 0, key 0")


def test_strange_labels_are_drawn_and_not_executed(open_demo: OpenDemo) -> None:
    visitor = open_demo(KEY, "strange")
    for row in range(len(STRANGE)):
        visitor.point(KEY, row, 0)
        expect(of(visitor, ".place")).to_have_text(f"query {row}, key 0")
    expect(of(visitor, ".sentence")).to_contain_text("<U+202E>turned")
    expect(visitor.point(KEY, 0, 0)).to_contain_text("<script>document.title='taken'</script>")
    assert visitor.page.title() != "taken"
    assert visitor.page.evaluate("document.querySelectorAll('img[src=x]').length") == 0


@pytest.mark.parametrize("size", [1, 512, 1024])
def test_every_size_is_painted(open_demo: OpenDemo, size: int) -> None:
    visitor = open_demo(KEY, str(size))
    said = "<s>0 attends to <s>0: 1.00"

    def says() -> bool:
        return visitor.point(KEY, 0, 0).inner_text().startswith(said)

    # Half a pixel is a whole cell of the largest: a page that still settles moves it away.
    wait_until(says, f"{said!r} of a settled page")
    if size > 1:
        expect(of(visitor, ".notes")).to_contain_text("label shown")
    if size == 1024:
        expect(of(visitor, ".notes")).to_contain_text("each pixel is the maximum of its cells")
    assert of(visitor, "canvas").evaluate(COLOURS) > 10


@pytest.mark.parametrize("dark", [False, True])
def test_zero_has_the_pages_background(open_demo: OpenDemo, dark: bool) -> None:
    page = open_demo(KEY, "difference", **({"dark": True} if dark else {})).page
    background = page.locator(".stApp").evaluate("app => getComputedStyle(app).backgroundColor")
    legend = page.locator(".matrix .bar").evaluate("bar => bar.style.background")
    stops = re.findall(r"rgb\([^)]*\)", legend)
    assert stops[len(stops) // 2] == background


def test_each_row_or_the_picture_has_the_full_colours(open_demo: OpenDemo) -> None:
    page = open_demo("scaled").page
    pictures = page.locator(".view.matrix canvas")
    expect(page.locator(".view.matrix[data-painted]")).to_have_count(4)
    by_picture, by_row, by_column, on_log = (
        pictures.nth(at).evaluate(COLOURS_OF_THE_FIRST_COLUMN) for at in range(4)
    )
    assert by_picture[0] != by_picture[1]
    assert by_row[0] == by_row[1] == by_picture[0]
    assert by_column == by_picture, "the largest of the first column is that of the picture"
    assert on_log[0] == by_picture[0]
    assert on_log[1] not in (by_picture[1], by_picture[0])
    expect(page.locator(".matrix .legend").nth(1)).to_contain_text("maximum of the row")
    expect(page.locator(".matrix .legend").nth(3)).to_contain_text("weight, log≤ 0.0008")


def test_pictures_beside_each_other_have_cells_of_one_size(open_demo: OpenDemo) -> None:
    """Of 15, 14 and 3 tokens: as large as those of the one with the least room, at one height."""

    def places(show: str, **how: int) -> tuple[list[float], list[float]]:
        views = open_demo("beside", show, **how).page.locator(".view.matrix[data-painted]")
        expect(views).to_have_count(3)
        found = [views.nth(at).get_attribute("data-cells") or "" for at in range(3)]
        tops, sizes = zip(*(map(float, each.split()[1:3]) for each in found), strict=True)
        return [*tops], [*sizes]

    for how in ({}, {"width": 1440}, {"width": 760}):
        (_, alone), (tops, beside) = places("alone", **how), places("beside", **how)
        assert len(set(alone)) > 1
        assert len(set(beside)) == len(set(tops)) == 1
        assert 0 < beside[0] <= min(alone)


def test_a_left_out_cell_and_a_hidden_column_say_so(open_demo: OpenDemo) -> None:
    visitor = open_demo(KEY, "cut")
    label = -0.8 - 0.5  # over a column
    for cell, said in {
        (0, 1): "<s>, the: left out, the row's larger values reach its share",
        (1, 2): "small is hidden",
        (label, 2): "key 2 of 12: small, hidden; click to show it",
    }.items():
        expect(visitor.point(KEY, *cell)).to_have_text(said)
    visitor.click(KEY, label, 1)
    expect(visitor.page.get_by_text("told (1,), run 2")).to_be_visible()
    walk(visitor, "ArrowDown", "h")
    expect(visitor.page.get_by_text("told (0,), run 3")).to_be_visible()


def test_what_is_no_number_is_not_taken_for_masked(open_demo: OpenDemo) -> None:
    visitor = open_demo(KEY, "unknown")
    expect(visitor.point(KEY, 5, 5)).to_have_text("sat attends to sat: not a number")
    expect(visitor.point(KEY, 5, 6)).to_have_text("on is masked for sat")
    expect(of(visitor, ".legend .absent")).to_have_text(["not a number", "masked"])
    visitor.away()
    plain, hatched = (of(visitor, "canvas").evaluate(COLOURS_IN, [5, at]) for at in (4, 7))
    assert plain == 1 < hatched


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


def test_a_strip_is_as_high_as_its_labels_need() -> None:
    """Many words written of a short sentence: every row has its label, every column its own."""
    assert room(9, 9, 520) == room(64, 64, 520) == room(9, 1, 520) == 520
    assert room(64, 5, 520) == 13 * 64 + 170


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


def test_a_bracket_spans_the_tokens_of_one_character(open_demo: OpenDemo) -> None:
    """Along both axes, without a gap inside, and it ends where the character does."""
    for dark in (False, True):
        visitor = open_demo(KEY, "emoji", **({"dark": True} if dark else {}))
        down, across, inside, after = of(visitor, "canvas").evaluate(BRACKETS)
        assert down == across == [2, 3, 4, 5]
        assert all(inside)
        assert not after
        expect(visitor.point(KEY, 2, -1)).to_have_text("query 2 of 7: 😀 1/4 <0xF0>")
