"""The table to pick from in a real browser, and what it makes of what a browser sends."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from playwright.sync_api import ViewportSize, expect

from explorer.components import wire
from explorer.components.cells import encode
from tests.components.conftest import OpenDemo

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


def test_a_cell_says_its_number_and_is_chosen_by_a_click_and_by_keys(open_demo: OpenDemo) -> None:
    visitor = open_demo("cells", "small")
    page, sentence = visitor.page, visitor.point("cells", 1, 2)
    expect(sentence).to_have_text("Layer 1, head 2: 0.0750 weight")
    expect(page.locator(".cells .legend")).to_contain_text("0.0875 weight")
    visitor.click("cells", 1, 2)
    expect(page.get_by_text("told (1, 2), run 2")).to_be_visible()
    visitor.away()
    page.locator(".cells canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    expect(sentence).to_contain_text("Layer 0, head 3")
    page.keyboard.press("Enter")
    expect(page.get_by_text("told (0, 3), run 3")).to_be_visible()


def test_differences_are_scaled_around_zero_and_what_has_no_number_says_so(
    open_demo: OpenDemo,
) -> None:
    visitor = open_demo("cells", "diverging")
    legend = visitor.page.locator(".cells .legend")
    expect(legend).to_contain_text("−2")
    expect(legend).to_contain_text("hatched: no value")
    expect(visitor.point("cells", 0, 0)).to_contain_text("−2.00")
    expect(visitor.point("cells", 0, 2)).to_have_text("Layer 0, head 2: no value")


@pytest.mark.parametrize(("kind", "number"), [("matrix", "0.53"), ("cells", "0.382")])
def test_a_painted_number_is_rounded_once(open_demo: OpenDemo, kind: str, number: str) -> None:
    """0.534990 is 0.5350 in steps of 16 bits, and 0.382497 is 0.3825."""
    page = open_demo(kind, "nearly").page
    page.evaluate(NOTE_WRITING)
    size = page.viewport_size
    assert size
    page.set_viewport_size(ViewportSize(width=size["width"] - 200, height=size["height"]))
    page.wait_for_function("window.written.some(([text]) => text.startsWith('0.'))")
    page.set_viewport_size(size)
    written = {text for text, *_ in page.evaluate("window.written") if text.startswith("0.")}
    assert number in written
    assert all(number.startswith(text) or text == number for text in written), written


def test_144_by_144_cells_can_be_hit(open_demo: OpenDemo) -> None:
    visitor = open_demo("cells", "large")
    visitor.click("cells", 143, 142)
    expect(visitor.page.get_by_text("told (143, 142), run 2")).to_be_visible()


def test_a_long_token_takes_no_label_from_the_others(open_demo: OpenDemo) -> None:
    visitor = open_demo("cells", "words")
    visitor.page.evaluate(NOTE_WRITING)
    expect(visitor.point("cells", 1, 7)).to_contain_text("Layer the, head mat")
    written = visitor.page.evaluate("window.written")
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


def header(values: torch.Tensor, top: float | None = None, **how: Any) -> dict[str, Any]:
    rows, columns = ([f"layer {at}" for at in range(size)] for size in values.shape)
    packed = encode(values, rows, columns, {}, scale="diverging", top=top, name="c", **how)
    return wire.unpack(packed)[0]


def test_long_names_are_sent_beside_what_is_written_in_their_place() -> None:
    names, short = ["layer 0", "layer 1"], ["0.0", "0.1"]
    sent = header(torch.zeros(2, 2), written=(names, short))
    assert (sent["rows"], sent["columns"]) == (names, names)
    assert sent["written"] == [names, short]
    assert header(torch.zeros(2, 2))["written"] == [names, names]


def test_the_scale_ends_at_the_largest_size() -> None:
    assert header(torch.tensor([[-3.0, 1.0]]))["top"] == 3
    assert header(torch.tensor([[-3.0, 1.0]]), top=5)["top"] == 5
    assert header(torch.zeros(1, 2))["top"] == 1
    assert header(torch.full((1, 2), torch.nan))["top"] == 1


def test_labels_fit_the_numbers() -> None:
    with pytest.raises(ValueError, match="1 rows and 1 columns"):
        encode(torch.zeros(2, 2), ["0"], ["0"], {}, scale="sequential", top=None, name="c")
