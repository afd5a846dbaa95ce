"""Masks, tokens, patches and held cells changed by hand, on ours and on published models."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Position, expect

from tests.browser.bench.changing import (
    EVERY_MODEL,
    OURS_AND_PUBLISHED,
    edits,
    hold,
    listed,
    press,
)
from tests.browser.visiting import Visitor
from tests.served import wait_until


@EVERY_MODEL
def test_a_cell_held_in_the_head_is_changed_at_once(visitor: Visitor, asked: str) -> None:
    page = visitor.open(f"/attention?{asked}&layer=0&head=1")
    hold(visitor, "attention_head", 2, 1)
    page.get_by_role("link", name="Change the held cell or this head").click()
    visitor.titled("Change the pass")
    visitor.rest()
    expect(page.get_by_text(re.compile(r"^Held: .* \(2\) → .* \(1\)$"))).to_be_visible()
    press(visitor, "Cut this edge in head 1")
    listed(visitor, "head 1, edge")
    hold(visitor, "map_before", 1, 0)
    press(visitor, "Forbid this look in layer 0")
    listed(visitor, "may not look at")
    press(visitor, "Allow this look in layer 0")
    listed(visitor, "may not look at", 0)
    expect(page.get_by_role("button", name="Remove")).to_have_count(1)
    visitor.no_traceback()


@OURS_AND_PUBLISHED
def test_edit_the_mask_and_run_again(visitor: Visitor, asked: str) -> None:
    page = visitor.open(f"/edits?{asked}&layer=0&head=0&change=Mask&mask_how=Cell+by+cell")
    visitor.drawn("map_after")
    page.evaluate("document.fonts.ready.then(() => true)")  # a first paint may come before them
    before = visitor.picture("map_after")
    for row in (0, 0):  # forbid the first cell, then allow it again
        visitor.drawn("paint")
        view = visitor.widget("paint").locator("[data-cells]")
        left, top, cell, _ = map(float, str(view.get_attribute("data-cells")).split())
        at = Position(x=left + 0.5 * cell, y=top + (row + 0.5) * cell)
        made = edits(visitor)
        view.locator("canvas").click(position=at)
        wait_until(lambda made=made: edits(visitor) != made, "another edit")  # type: ignore[misc]
        visitor.rest()
        if edits(visitor).startswith("1.1"):
            listed(visitor, "may not look at")
            is_decoder = "model=bert" not in asked
            nowhere = page.get_by_text("May look nowhere")
            expect(nowhere).to_have_count(int(is_decoder))
            wait_until(lambda: visitor.picture("map_after") != before, "another map")
    assert edits(visitor) == "", "painted back, so nothing is changed"
    wait_until(lambda: visitor.picture("map_after") == before, "the map of the beginning")
    visitor.no_traceback()


@EVERY_MODEL
def test_a_mask_preset_as_if_the_text_was_filled_up(visitor: Visitor, asked: str) -> None:
    page = visitor.open(f"/edits?{asked}&layer=0&head=0&change=Mask")
    before = visitor.picture("map_after")
    visitor.widget("mask_preset").get_by_text("Padding", exact=True).click()
    expect(page.get_by_label("Tokens", exact=True)).to_be_visible()
    visitor.rest()
    press(visitor, "Set the mask")
    listed(visitor, "the last 2 are filler, and nobody looks at them")
    wait_until(lambda: visitor.picture("map_after") != before, "another map")
    press(visitor, "Set the mask")
    listed(visitor, "filler", 1)
    expect(page.get_by_text("May look nowhere")).to_have_count(0)
    visitor.no_traceback()


def test_replace_a_token_and_mask_one(visitor: Visitor) -> None:
    page = visitor.open("/edits?model=bert&text=the+cat+is+good&change=Token")
    visitor.widget("token_to_change").get_by_text("good", exact=True).click()
    expect(page.get_by_text("Token 4 is “good”.")).to_be_visible()
    field = page.get_by_label("Becomes", exact=True)
    field.fill("nonsense")
    field.press("Enter")
    expect(page.get_by_text(re.compile("is (not in this model|[0-9]+ tokens)"))).to_be_visible()
    field.fill("dog")
    field.press("Enter")
    visitor.rest()
    press(visitor, "Replace")
    listed(visitor, "“good” (4) becomes “dog”")
    expect(visitor.widget("token_to_change").get_by_text("dog", exact=True)).to_be_visible()
    press(visitor, "Mask it")
    listed(visitor, "becomes “[MASK]”")
    visitor.open("/edits?model=shakespeare&text=To+be&change=Token")
    visitor.widget("token_to_change").get_by_text("To", exact=True).click()
    visitor.rest()
    field.fill("be")
    field.press("Enter")
    visitor.rest()
    press(visitor, "Replace")
    listed(visitor, "becomes")
    visitor.no_traceback()


FROM_ANOTHER = pytest.mark.parametrize(
    ("asked", "other", "wrong"),
    [
        ("model=induction&text=kqzrkqz", "kqarkqa", "kq"),
        ("model=gpt2&text=5+17+3", "5 9 3", "5 9"),
    ],
    ids=["ours", "published"],
)


@FROM_ANOTHER
def test_every_head_is_patched_at_once(
    visitor: Visitor, asked: str, other: str, wrong: str
) -> None:
    page = visitor.open(f"/edits?{asked}&look=Every+head")
    off = visitor.picture("heads_off")
    page.get_by_text("Patched", exact=True).click()
    field = page.get_by_label("Another sentence of as many tokens", exact=True)
    field.fill(wrong)
    field.press("Enter")
    expect(page.get_by_text("only texts of the same length")).to_be_visible()
    field.fill(other)
    field.press("Enter")
    expect(page.get_by_text("Each head alone as it is over the other sentence")).to_be_visible()
    wait_until(lambda: visitor.picture("heads_off") != off, "other numbers")
    visitor.asks(heads_are="Patched", heads_from=other)
    visitor.no_traceback()


@FROM_ANOTHER
def test_patching(visitor: Visitor, asked: str, other: str, wrong: str) -> None:
    page = visitor.open(f"/edits?{asked}&change=Patch&layer=0&head=0")
    field = page.get_by_label("Another sentence", exact=True)
    button = page.get_by_role("button", name="Patch layer 0, head 0", exact=True)
    for text in (wrong, other):
        field.fill(text)
        field.press("Enter")
        visitor.rest()
        is_wrong = text == wrong
        expect(page.get_by_text("only texts of the same length")).to_have_count(int(is_wrong))
        expect(button).to_be_enabled(enabled=not is_wrong)
    button.click()
    visitor.rest()
    listed(visitor, f"as in “{other}”")
    visitor.no_traceback()
