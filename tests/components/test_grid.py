"""The overview in a real browser, and what it makes of what a browser sends."""

from __future__ import annotations

import numpy as np
import torch
from playwright.sync_api import Locator, Page, expect

from explorer.analysis.thumbnails import of_weights
from explorer.components import wire
from explorer.components.grid import encode, natural_height
from tests.components.conftest import OpenDemo
from tests.components.samples import causal, heads


def at(page: Page, layer: int, head: int) -> dict[str, float]:
    view = page.locator(".view.grid")
    left, top, wide, high = map(float, str(view.get_attribute("data-cells")).split())
    return {"x": left + (head + 0.4) * wide, "y": top + (layer + 0.4) * high}


def canvas(page: Page) -> Locator:
    return page.locator(".grid canvas")


def test_hover_names_a_head_and_its_largest_weight(open_demo: OpenDemo) -> None:
    page = open_demo("grid", "small")
    canvas(page).hover(position=at(page, 1, 2))  # type: ignore[arg-type]
    largest = float((heads(2, 4, 12, 12) * causal(12))[1, 2].max())
    expect(page.locator(".grid .sentence")).to_contain_text(
        f"layer 1, head 2: largest weight {largest:.3f}"
    )


def test_a_click_comes_back_once(open_demo: OpenDemo) -> None:
    page = open_demo("grid", "small")
    expect(page.get_by_text("chosen (0, 0), run 1")).to_be_visible()
    canvas(page).click(position=at(page, 1, 3))  # type: ignore[arg-type]
    expect(page.get_by_text("chosen (1, 3), run 2")).to_be_visible()
    canvas(page).click(position=at(page, 1, 3))  # type: ignore[arg-type]
    canvas(page).click(position=at(page, 0, 1))  # type: ignore[arg-type]
    expect(page.get_by_text("chosen (0, 1), run 3")).to_be_visible()


def test_arrows_walk_and_enter_picks(open_demo: OpenDemo) -> None:
    page = open_demo("grid", "cross")
    canvas(page).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".grid .sentence")).to_contain_text("layer 1, head 1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("chosen (1, 1), run 2")).to_be_visible()


def test_144_heads_of_128_tokens_say_how_they_were_made_small(open_demo: OpenDemo) -> None:
    page = open_demo("grid", "large")
    expect(page.locator(".grid .notes")).to_contain_text("max over 4×4 cells")
    canvas(page).hover(position=at(page, 11, 7))  # type: ignore[arg-type]
    expect(page.locator(".grid .sentence")).to_contain_text("layer 11, head 7")


def test_a_small_weight_is_not_drawn_as_zero() -> None:
    weights = torch.tensor([[[[1.0, 1e-6, 0.0]]]])
    _, planes = wire.unpack(encode(of_weights(weights), "layer", "head", name="g"))
    assert np.frombuffer(planes["cells"], np.uint8).tolist() == [255, 1, 0]


def test_the_height_is_decided_by_the_shape() -> None:
    assert natural_height(12, 128, 128) == natural_height(12, 128, 128) == 560
    assert natural_height(12, 9, 9, 12) < 480, "twelve heads are narrow, so their layers are low"
    assert natural_height(2, 9, 9, 2) == natural_height(2, 9, 9)
