"""Ranked heads in a real browser, and what becomes of what a browser sends."""

import numpy as np
import torch
from playwright.sync_api import expect

from explorer.components import wire
from explorer.components.ranked import Item, checked_ranking, encode
from tests.components.conftest import OpenDemo

ITEMS = [Item(1, 3, "1 of 2", "0.5", torch.tensor([[0.5, 1e-6, 0.0]])) for _ in range(2)]


def test_a_head_says_itself_and_is_chosen_by_a_click_and_by_keys(open_demo: OpenDemo) -> None:
    page = open_demo("ranked", "small").page
    second = page.get_by_role("button", name="2 of 8: layer 0, head 1, 0.880")
    second.hover()
    expect(page.locator(".ranked .sentence")).to_contain_text("2 of 8: layer 0, head 1, 0.880")
    second.click()
    expect(page.get_by_text("told (0, 1), run 2")).to_be_visible()
    expect(second).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".ranked [aria-pressed=true]")).to_have_count(1)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("told (0, 2), run 3")).to_be_visible()


def test_four_rows_of_six_are_seen_whole(open_demo: OpenDemo) -> None:
    page = open_demo("ranked", "many").page
    expect(page.locator(".ranked button")).to_have_count(24)
    fits = "element => element.scrollHeight <= element.clientHeight"
    assert page.locator(".ranked .stage").evaluate(fits), "the height was decided for six in a row"


def test_a_small_weight_is_not_drawn_as_zero() -> None:
    header, planes = wire.unpack(encode(ITEMS, 1, name="r"))
    assert np.frombuffer(planes["cells"], np.uint8).tolist() == [255, 1, 0] * 2
    assert header["items"][0]["top"] == 0.5
    nothing = Item(0, 0, "1 of 1", "0", torch.zeros(1, 1))
    _, planes = wire.unpack(encode([nothing], 1, name="r"))
    assert list(planes["cells"]) == [0]
    assert wire.unpack(encode([], 1, name="r"))[0]["items"] == []


def test_nonsense_from_a_browser_is_no_pick() -> None:
    assert checked_ranking([1, 3], ITEMS) == (1, 3)
    for sent in [None, "no", [1], [1, 3, 3], [0, 0], [1.0, 3], [True, 3], {"a": 1}]:
        assert checked_ranking(sent, ITEMS) is None, sent
