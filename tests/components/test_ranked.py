"""Ranked heads in a real browser."""

import numpy as np
import torch
from playwright.sync_api import expect

from explorer.components import wire
from explorer.components.picker import RankedHead, encode_ranked
from tests.components.conftest import OpenDemo, told

ITEMS = [RankedHead(1, 3, "1 of 2", "0.5", torch.tensor([[0.5, 1e-6, 0.0]])) for _ in range(2)]


def test_a_head_says_itself_and_is_chosen_by_a_click_and_by_keys(open_demo: OpenDemo) -> None:
    visitor = open_demo("ranked")
    view = visitor.widget("ranked").locator(".ranked")
    second = view.get_by_role("button", name="2 of 8: layer 0, head 1, 0.880", exact=True)
    second.hover()
    expect(view.locator(".sentence")).to_contain_text("2 of 8: layer 0, head 1, 0.880")
    second.click()
    told(visitor, "(0, 1), run 2")
    expect(second).to_have_attribute("aria-pressed", "true")
    expect(view.locator("[aria-pressed=true]")).to_have_count(1)
    visitor.page.keyboard.press("Tab")
    visitor.page.keyboard.press("Enter")
    told(visitor, "(0, 2), run 3")
    many = visitor.widget("many").locator(".ranked")  # four rows of six are seen whole
    expect(many.locator("button")).to_have_count(24)
    fits = "element => element.scrollHeight <= element.clientHeight"
    assert many.locator(".stage").evaluate(fits), "the height was decided for six in a row"


def test_a_small_weight_is_not_drawn_as_zero() -> None:
    header, planes = wire.unpack(encode_ranked(ITEMS, 1, name="r"))
    assert np.frombuffer(planes["cells"], np.uint8).tolist() == [255, 1, 0] * 2
    assert header["items"][0]["top"] == 0.5
    nothing = RankedHead(0, 0, "1 of 1", "0", torch.zeros(1, 1))
    _, planes = wire.unpack(encode_ranked([nothing], 1, name="r"))
    assert list(planes["cells"]) == [0]
    assert wire.unpack(encode_ranked([], 1, name="r"))[0]["items"] == []
