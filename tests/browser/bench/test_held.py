"""A held cell, a held token and the heads drawn as lines, by hand: a link repeats them all."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Position, expect

from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import wait_until

OURS = "/attention?model=shakespeare&text=To+be,+or+not+to+be"
PUBLISHED = "/attention?model=bert&text=the+capital+of+france"
BOTH = pytest.mark.parametrize("address", [OURS, PUBLISHED], ids=["ours", "published"])


def place(visitor: Visitor, row: int, column: int) -> Position:
    visitor.drawn("attention_head")
    view = visitor.widget("attention_head").locator("[data-cells]")
    left, band, cell = map(float, str(view.get_attribute("data-cells")).split())
    return Position(x=left + (column + 0.5) * cell, y=band + (row + 0.5) * cell)


def part(visitor: Visitor, view: str, what: str) -> Locator:
    return visitor.widget(f"attention_{view}").locator(what)


@BOTH
def test_a_held_cell_is_in_the_link_and_leads_to_its_query_and_key(
    visitor: Visitor, visit: Visit, address: str
) -> None:
    page = visitor.open(address)
    part(visitor, "head", "canvas").click(position=place(visitor, 3, 1))
    visitor.asks(held="q3k1")
    friend = visit()
    friend.page.goto(page.url)
    friend.rest()
    expect(part(friend, "head", ".place")).to_have_text("query 3, key 1")
    page.keyboard.press("ArrowUp")
    visitor.asks(held="q2k1")
    page.mouse.move(5, 5)
    expect(part(visitor, "head", ".place")).to_have_text("query 2, key 1")
    page.get_by_role("link", name="Query and key of the held cell").click()
    visitor.titled("Query and key")
    visitor.rest()
    friend.page.goto(page.url)
    friend.rest()
    for each in (visitor, friend):
        expect(each.widget("query").locator("input")).to_have_value(re.compile("^2 ·"))
        expect(each.widget("key").locator("input")).to_have_value(re.compile("^1 ·"))
    visitor.follow("Attention")
    expect(part(visitor, "head", ".place")).to_have_text("query 2, key 1")
    part(visitor, "head", "canvas").focus()
    page.keyboard.press("Escape")
    wait_until(lambda: "held" not in visitor.query(), "nothing held in the address")


@BOTH
def test_the_heads_drawn_as_lines_and_a_held_token_are_in_the_link(
    visitor: Visitor, visit: Visit, address: str
) -> None:
    page = visitor.open(address + "&view=Lines&layer=0&head=0")
    visitor.drawn("attention_lines")
    chips = part(visitor, "lines", "button")
    chips.nth(2).click()
    visitor.asks(drawn="0.2")
    part(visitor, "lines", ".stage").click(position=Position(x=20, y=24 * 2 + 12))
    visitor.asks(held="q2")
    friend = visit()
    friend.page.goto(page.url)
    friend.rest()
    friend.drawn("attention_lines")
    pressed = [chip.get_attribute("aria-pressed") for chip in part(friend, "lines", "button").all()]
    assert pressed == ["true", "false", "true", "false"]
    expect(part(friend, "lines", ".sentence")).to_contain_text("attends most to")
    friend.page.get_by_role("radio", name="Tokens").click()
    sentence = part(friend, "tokens", ".sentence")
    expect(sentence).to_contain_text("is token 2 of")
    part(friend, "tokens", ".chip").nth(1).click()
    friend.asks(held="q1")
    friend.page.get_by_role("link", name="Query and key of the held token").click()
    friend.titled("Query and key")
    expect(friend.widget("query").locator("input")).to_have_value(re.compile("^1 ·"))
    visitor.page.get_by_role("radio", name="1", exact=True).last.click()
    wait_until(lambda: "drawn" not in visitor.query(), "another head is drawn alone")
