"""Tokens in two halves, in a real browser."""

from typing import Any

import pytest
import torch
from playwright.sync_api import Locator, expect

from explorer.components.inspect import STRONGEST_NAMED, encode
from tests.components.conftest import OpenDemo, told
from tests.components.samples import WORDS, attention, heads


def chip(view: Locator, at: int, side: int = 0) -> Locator:
    return view.locator(f'.chip[data-side="{side}"][data-at="{at}"]')


def band(view: Locator, at: int, which: str, side: int = 0) -> str:
    colour: str = chip(view, at, side).locator(f".{which}").evaluate("b => b.style.backgroundColor")
    return colour


def said(view: Locator, half: str) -> Locator:
    return view.locator(f".{half} .said")


def names_the_strongest(half: Locator, lead: str, values: torch.Tensor) -> None:
    """The half begins with these words, and names the strongest tokens, the first with its weight.

    A token is named by its word and its place.
    """
    expect(half).to_contain_text(lead)
    shown = [
        partner.locator(".token").inner_text() + partner.locator(".place").inner_text().strip()
        for partner in half.locator(".partner").all()
    ]
    order = [int(i) for i in values.argsort(descending=True) if round(float(values[i]), 4) > 0]
    assert shown == [f"{WORDS[i]}{i}" for i in order[:STRONGEST_NAMED]]
    expect(half).to_contain_text(f"{float(values.max()):.3f}")


def test_both_directions_of_a_token_are_named_and_it_is_held(
    open_demo: OpenDemo,
) -> None:
    visitor = open_demo("inspect")
    view, weights = visitor.widget("inspect"), attention(12)
    chip(view, 4).hover()
    names_the_strongest(said(view, "above"), "attends to", weights[4])
    names_the_strongest(said(view, "below"), "attended to by", weights[:, 4])
    strongest = band(view, int(weights[4].argmax()), "high")
    weaker = band(view, int(weights[4, :4].argmin()), "high")
    assert strongest
    assert weaker not in ("", strongest)
    assert band(view, 6, "high") == "", "it may not look ahead"
    assert "off" in str(chip(view, 6).locator(".high").get_attribute("class"))
    assert band(view, int(weights[:, 4].argmax()), "low")

    view, weights = visitor.widget("cross"), heads(10, 12)  # two strips
    chip(view, 3, side=0).hover()
    expect(said(view, "above")).to_contain_text("attends to")
    expect(said(view, "below")).to_have_text("")
    assert band(view, int(weights[3].argmax()), "high", side=1)
    chip(view, 2, side=1).hover()
    expect(said(view, "below")).to_contain_text("attended to by")
    expect(said(view, "above")).to_have_text("")
    assert band(view, int(weights[:, 2].argmax()), "low", side=0)
    chip(view, 3, side=0).focus()
    visitor.page.keyboard.press("ArrowDown")
    expect(view.locator(".chip[data-side='1'][aria-pressed='true']")).to_have_count(1)

    view = visitor.widget("empty")  # a row of zeros looks at nothing
    chip(view, 2).hover()
    expect(said(view, "above")).to_have_text("attends to nothing")
    chip(view, 3).hover()
    grey = chip(view, 4).locator(".high")
    assert "off" not in str(grey.get_attribute("class")), "it is not masked"
    assert "rgb" in str(grey.get_attribute("style"))
    expect(view.locator(".notes")).to_contain_text("grey is not a number")

    group, bytes_of = visitor.widget("emoji").locator(".group"), ["F0", "9F", "98", "80"]
    expect(group).to_have_count(1)
    labels = [f"😀 {place}/4 <0x{byte}>" for place, byte in enumerate(bytes_of, 1)]
    expect(group.locator(".label")).to_have_text(labels)

    page, view = visitor.page, visitor.widget("held")  # a token is held, told, and let go
    sentence = view.locator(".sentence")
    expect(sentence).to_contain_text("cat is token 4 of 12")
    chip(view, 7).hover()
    expect(sentence).to_contain_text("the is token 7 of 12")
    visitor.away()
    expect(sentence).to_contain_text("cat is token 4 of 12")
    chip(view, 7).click()
    told(visitor, "((0, 7),)")
    visitor.away()
    expect(sentence).to_contain_text("pinned, Esc unpins")
    page.keyboard.press("ArrowRight")
    expect(sentence).to_contain_text("mat is token 8 of 12")
    expect(chip(view, 8)).to_have_attribute("aria-pressed", "true")
    expect(view.locator(".spoken")).to_contain_text("mat attends to")
    page.keyboard.press("Escape")
    told(visitor, "(None,)")
    expect(sentence).to_have_class("sentence idle")
    chip(view, 5).click()
    chip(view, 5).click()
    visitor.away()
    expect(sentence).to_have_class("sentence idle")


def test_wrong_shapes_are_refused_in_words() -> None:
    weights = attention(12)
    how: dict[str, Any] = {"allowed": None, "same": True, "words": {}}
    with pytest.raises(ValueError, match="11 columns"):
        encode(weights, WORDS, WORDS[1:], **how)
    with pytest.raises(ValueError, match="not the same tokens"):
        encode(weights[1:], WORDS[1:], WORDS, **how)
