"""The overview in a real browser, and what it makes of what a browser sends."""

import numpy as np
import torch
from playwright.sync_api import expect

from explorer.analysis.thumbnails import thumbnails_of_weights
from explorer.components import wire
from explorer.components.picker import encode_grid
from tests.browser.visiting import Visitor, box_of
from tests.components.conftest import OpenDemo, told
from tests.components.samples import causal, heads


def test_a_head_names_itself_and_is_chosen_by_a_click_and_by_keys(open_demo: OpenDemo) -> None:
    visitor = open_demo("grid")
    page, sentence = visitor.page, visitor.point("grid", 1, 2)
    largest = float((heads(2, 4, 12, 12) * causal(12))[1, 2].max())
    expect(sentence).to_contain_text(f"layer 1, head 2: maximum weight {largest:.3f}")
    visitor.pick("grid", layer=1, head=3)
    told(visitor, "(1, 3), run 2")
    visitor.pick("grid", layer=1, head=3)  # it is the one that is chosen
    visitor.pick("grid", layer=0, head=1)
    told(visitor, "(0, 1), run 3")
    visitor.away()
    visitor.widget("grid").locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(sentence).to_contain_text("layer 1, head 2")
    page.keyboard.press("Enter")
    told(visitor, "(1, 2), run 4")
    expect(visitor.widget("large").locator(".notes")).to_contain_text("max over 4×4 cells")
    expect(visitor.point("large", 11, 7)).to_contain_text("layer 11, head 7")
    expect(visitor.point("unknown", 1, 2)).to_contain_text("head 2: its weights are not a number")
    expect(visitor.widget("unknown").locator(".notes")).to_contain_text("grey: not a number")

    rows, deep = 0, visitor.widget("deep")  # many layers stand in columns that the keys follow
    for width, height in [(1920, 1080), (700, 720), (1280, 720)]:
        visitor.sized(width, height)
        rows = fills_the_room(visitor)
    visitor.pick("deep", layer=rows - 1, head=2)
    visitor.away()
    deep.locator("canvas").focus()
    page.keyboard.press("ArrowDown")
    expect(deep.locator(".sentence")).to_contain_text(f"layer {rows}, head 2")
    page.keyboard.press("Enter")
    told(visitor, f"({rows}, 2)")


def fills_the_room(visitor: Visitor) -> int:
    """30 layers of 9 heads do, and each is found where it is; how many stand in a column."""
    view = visitor.widget("deep").locator("[data-columns]")
    rows, across = map(float, str(view.get_attribute("data-columns")).split())
    left, top, wide, high = map(float, str(view.get_attribute("data-cells")).split())
    box = box_of(view.locator("canvas"))
    assert top + rows * high <= box["height"] + 8
    columns = -(-30 // int(rows))
    assert columns > 1
    used = left + (columns - 1) * across + 9 * wide
    assert used <= box["width"] + 8
    one = min((box["width"] - left) / 9, (box["height"] - top) / 30)
    assert wide > 1.1 * one, "larger than in one column"
    room = (box["width"] - used) / wide < 9 or top + (rows + 1) * high > box["height"]
    assert room, "no further column, or no larger picture, would fit"
    for layer, head in [(0, 0), (29, 8), (int(rows) - 1, 4), (int(rows), 0)]:
        expect(visitor.point("deep", layer, head)).to_contain_text(f"layer {layer}, head {head}:")
    return int(rows)


def test_a_small_weight_is_not_sent_as_zero_nor_what_is_no_number_as_one() -> None:
    weights = torch.tensor([[[[1.0, 1e-6, 0.0]]]])
    _, planes = wire.unpack(encode_grid(thumbnails_of_weights(weights), name="g"))
    assert np.frombuffer(planes["cells"], np.uint8).tolist() == [255, 1, 0]
    weights = torch.tensor([[[[1.0, torch.nan, 0.0]], [[torch.nan] * 3]]])
    header, planes = wire.unpack(encode_grid(thumbnails_of_weights(weights), name="g"))
    assert header["tops"] == [[1.0, None]]
    assert planes["unknown"] == bytes([0b01011100])
