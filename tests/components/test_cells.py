"""The table to pick from in a real browser, and what it makes of what a browser sends."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from playwright.sync_api import Locator, Page, Position, expect

from explorer.components import wire
from explorer.components.cells import encode, natural_height
from tests.components.conftest import OpenDemo


def at(page: Page, row: int, column: int) -> Position:
    view = page.locator(".view.cells")
    left, top, wide, high = map(float, str(view.get_attribute("data-cells")).split())
    return Position(x=left + (column + 0.5) * wide, y=top + (row + 0.5) * high)


def canvas(page: Page) -> Locator:
    return page.locator(".cells canvas")


def test_a_cell_says_its_number_and_a_click_comes_back_once(open_demo: OpenDemo) -> None:
    page = open_demo("cells", "small")
    canvas(page).hover(position=at(page, 1, 2))
    expect(page.locator(".cells .sentence")).to_have_text("Layer 1, head 2: 0.0750 weight")
    canvas(page).click(position=at(page, 1, 2))
    expect(page.get_by_text("chosen (1, 2), run 2")).to_be_visible()
    expect(page.locator(".cells .legend")).to_contain_text("0.0875 weight")


def test_arrows_walk_and_enter_chooses(open_demo: OpenDemo) -> None:
    page = open_demo("cells", "small")
    canvas(page).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".cells .sentence")).to_contain_text("Layer 1, head 2")
    page.keyboard.press("Enter")
    expect(page.get_by_text("chosen (1, 2), run 2")).to_be_visible()


def test_what_has_no_number_says_so(open_demo: OpenDemo) -> None:
    page = open_demo("cells", "absent")
    canvas(page).hover(position=at(page, 0, 1))
    expect(page.locator(".cells .sentence")).to_have_text("Layer 0, head 1: no value")
    expect(page.locator(".cells .legend")).to_contain_text("hatched: no value")


def test_144_by_144_cells_can_be_hit(open_demo: OpenDemo) -> None:
    page = open_demo("cells", "large")
    canvas(page).click(position=at(page, 143, 142))
    expect(page.get_by_text("chosen (143, 142), run 2")).to_be_visible()


def test_differences_are_scaled_around_zero(open_demo: OpenDemo) -> None:
    page = open_demo("cells", "diverging")
    expect(page.locator(".cells .legend")).to_contain_text("−2")
    canvas(page).hover(position=at(page, 0, 0))
    expect(page.locator(".cells .sentence")).to_contain_text("−2.00")


NOTE_WRITING = """() => {
  window.written = [];
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
    const bare = text.replace(/[\\u2068\\u2069]/g, ""), wide = this.measureText(text).width;
    const from = {left: x, center: x - wide / 2, right: x - wide}[this.textAlign];
    window.written.push([bare, from, from + wide, y]);
    write.call(this, text, x, y, ...more);
  };
}"""


def test_a_long_token_takes_no_label_from_the_others(open_demo: OpenDemo) -> None:
    page = open_demo("cells", "words")
    page.evaluate(NOTE_WRITING)
    canvas(page).hover(position=at(page, 1, 7))
    expect(page.locator(".cells .sentence")).to_contain_text("Layer the, head mat")
    written = page.evaluate("window.written")
    ends = [place for place, (text, *_) in enumerate(written) if text == "layer ↓"]
    written = written[ends[-2] + 1 if ends[1:] else 0 : ends[-1]]  # the last painting
    across = sorted((left, right, text) for text, left, right, y in written if y == 28)
    texts = [text for _, _, text in across]
    assert texts[:3] == ["<s>", "the", "cat"]
    assert texts[4:] == ["sat", "on", "the", "mat"]
    assert "…" in texts[3], "cut in the middle"
    assert all(one[1] <= other[0] for one, other in pairwise(across))
    assert all(left >= 0 for _, left, _, _ in written)
    assert sum(text.startswith("antidis") and "…" in text for text, *_ in written) == 1


def test_long_names_are_sent_beside_what_is_written_in_their_place() -> None:
    values, names = torch.zeros(2, 2), ["layer 0 · head 0", "layer 0 · head 1"]
    how: dict[str, Any] = {"scale": "sequential", "top": None, "name": "c"}
    short = ["0.0", "0.1"]
    header = wire.unpack(encode(values, names, names, {}, written=(names, short), **how))[0]
    assert (header["rows"], header["columns"]) == (names, names)
    assert header["written"] == [names, short]
    assert wire.unpack(encode(values, names, names, {}, **how))[0]["written"] == [names, names]


def test_the_scale_ends_at_the_largest_size() -> None:
    def top(values: torch.Tensor, given: float | None = None) -> float:
        names = [str(at) for at in range(len(values[0]))]
        packed = encode(values, ["0"], names, {}, scale="diverging", top=given, name="c")
        return float(wire.unpack(packed)[0]["top"])

    assert top(torch.tensor([[-3.0, 1.0]])) == 3
    assert top(torch.tensor([[-3.0, 1.0]]), 5) == 5
    assert top(torch.zeros(1, 2)) == top(torch.full((1, 2), torch.nan)) == 1


def test_labels_fit_the_numbers() -> None:
    with pytest.raises(ValueError, match="1 rows and 1 columns"):
        encode(torch.zeros(2, 2), ["0"], ["0"], {}, scale="sequential", top=None, name="c")


def test_the_height_is_decided_by_the_rows() -> None:
    assert natural_height(2) < natural_height(6) < natural_height(48) == natural_height(480)
