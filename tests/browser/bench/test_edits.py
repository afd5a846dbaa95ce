"""Changing the pass by hand, on a model of ours and on published ones."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import expect

from tests.browser.bench.changing import (
    EVERY_MODEL,
    NOTHING,
    OURS_AND_PUBLISHED,
    chances,
    chart,
    edits,
    listed,
    press,
)
from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import wait_until


@EVERY_MODEL
def test_ablate_a_head_a_layer_and_an_edge_and_undo(visitor: Visitor, asked: str) -> None:
    page = visitor.open(f"/edits?{asked}&layer=0&head=1")
    expect(page.get_by_text(NOTHING)).to_be_visible()
    before = chances(visitor)
    press(visitor, "Ablate layer 0, head 1")
    listed(visitor, "head 1 to zero")
    wait_until(lambda: chances(visitor) != before, "other chances")
    visitor.widget("change").get_by_text("Layer", exact=True).click()
    visitor.asks(change="Layer")
    visitor.rest()
    press(visitor, "Ablate the feed-forward of layer 0")
    listed(visitor, "feed-forward to zero")
    visitor.widget("change").get_by_text("Edge", exact=True).click()
    visitor.asks(change="Edge")
    visitor.rest()
    press(visitor, "Cut the edge")
    listed(visitor, "edge ")
    assert edits(visitor).startswith("1.3~h.")
    for left in (2, 1, 0):
        press(visitor, "Undo")
        wait_until(lambda left=left: edits(visitor).startswith(f"1.{left}~"), f"{left} edits left")  # type: ignore[misc]
    listed(visitor, "(undone)", 3)
    wait_until(lambda: chances(visitor) == before, "the chances of the beginning")
    press(visitor, "Redo")
    listed(visitor, "(undone)", 2)
    visitor.no_traceback()


@OURS_AND_PUBLISHED
def test_the_history_is_in_the_address(visitor: Visitor, visit: Visit, asked: str) -> None:
    page = visitor.open(f"/edits?{asked}&layer=0&head=0&change=Mask&mask_how=Hide+a+key")
    press(visitor, "Hide it from everybody")
    listed(visitor, "nobody looks at")
    visitor.drawn("map_after")
    seen = visitor.picture("map_after"), chances(visitor)
    friend = visit()
    friend.page.goto(page.url)
    friend.rest()
    listed(friend, "nobody looks at")
    wait_until(lambda: (friend.picture("map_after"), chances(friend)) == seen, "the same view")
    press(friend, "Remove")
    expect(friend.page.get_by_text(NOTHING)).to_be_visible()
    assert edits(friend) == ""
    friend.no_traceback()


@OURS_AND_PUBLISHED
def test_an_edit_that_does_not_fit_waits_for_a_text_that_it_fits(
    visitor: Visitor, asked: str
) -> None:
    page = visitor.open(f"/edits?{asked}&layer=0&head=0&edits=1.1~k.{asked_part(asked)}.a.4")
    listed(visitor, "nobody looks at")
    field, long = page.get_by_label("Your sentence", exact=True), dict(parse_qsl(asked))["text"]
    expect(field).to_have_value(long)
    visitor.type(long[:2])
    expect(page.get_by_text("1 edit does not fit here and is set aside")).to_be_visible()
    listed(visitor, "There is no key 4 here")
    visitor.follow("Attention")
    visitor.type(long)
    visitor.rest()
    visitor.follow("Change the pass")
    listed(visitor, "nobody looks at")
    expect(page.get_by_text("set aside")).to_have_count(0)
    visitor.no_traceback()


def asked_part(asked: str) -> str:
    return "e" if "bert" in asked else "d"


@pytest.mark.parametrize(
    "asked", ["model=translation", "model=t5&text=hello+world"], ids=["ours", "published"]
)
def test_an_answer_is_written_anew(visitor: Visitor, asked: str) -> None:
    page = visitor.open(f"/edits?{asked}&part=Cross&layer=0&change=Layer")
    written = page.get_by_text(re.compile("^After, it writes:"))
    before = written.text_content()
    press(visitor, "Ablate the attention of layer 0")
    listed(visitor, "attention to zero")
    expect(written).not_to_have_text(before or "")
    visitor.no_traceback()


@OURS_AND_PUBLISHED
def test_every_head_is_ablated_at_once_and_a_click_ablates_one(
    visitor: Visitor, asked: str
) -> None:
    page = visitor.open(f"/edits?{asked}&layer=0&head=0&look=Every+head")
    visitor.pick("heads_off", layer=1, head=1)
    visitor.asks(layer="1", head="1")
    visitor.rest()
    assert edits(visitor) == ""
    page.get_by_text("Ablates the head", exact=True).click()
    visitor.asks(click="Ablates the head")
    visitor.rest()
    expect(page.get_by_text("in the pass as it is")).to_be_visible()
    visitor.pick("heads_off", layer=0, head=2)
    listed(visitor, "Layer 0, head 2 to zero")
    expect(page.get_by_text("in the pass with your edits")).to_be_visible()
    visitor.no_traceback()


@OURS_AND_PUBLISHED
def test_faithfulness_of_a_map(visitor: Visitor, asked: str) -> None:
    page = visitor.open(f"/edits?{asked}&layer=0&head=1&look=Faithfulness")
    before = chart(visitor, "faithfulness")
    page.get_by_text("The whole layer", exact=True).click()
    visitor.asks(edges_of="The whole layer")
    wait_until(lambda: chart(visitor, "faithfulness") != before, "another chart")
    visitor.no_traceback()


@pytest.mark.parametrize(
    ("address", "said", "waits"),
    [
        ("edits=nonsense", "is not a list of edits that this version reads", ""),
        ("edits=1.2~h.d.0.1.z~what", "“what” in the address is no edit; it was dropped.", ""),
        ("edits=1.1~h.d.9.1.z", "There is no layer 9 here: there are 2.", "h.d.9.1.z"),
        ("edits=1.1~h.e.0.1.z", "This model has no such attention.", "h.e.0.1.z"),
        ("edits=1.1" + "~h.d.0.1.z" * 200, "at most 1,500 are read", ""),
    ],
    ids=["another language", "no edit", "no layer", "no part", "too long"],
)
def test_a_bad_value_in_the_address_is_said_and_replaced(
    visitor: Visitor, address: str, said: str, waits: str
) -> None:
    page = visitor.open(f"/edits?model=gpt2&text=5+17+3&layer=0&head=1&{address}")
    expect(page.get_by_text(said)).to_be_visible()
    listed(visitor, "1. Layer 0, head 1 to zero", int("~what" in address))
    press(visitor, "Ablate layer 0, head 1")  # from then on the address holds what is made
    wanted = f"1.2~{waits}~h.d.0.1.z" if waits else "1.1~h.d.0.1.z"
    wait_until(lambda: edits(visitor) == wanted, "what is made in the address")
    visitor.no_traceback()


def test_no_path_of_the_page_breaks_its_policy(visitor: Visitor, tmp_path: Path) -> None:
    visitor.open("/edits?model=shakespeare&edits=1.1~h.d.0.0.z&look=Every+head")
    visitor.drawn("heads_off")
    assert visitor.violations() == []
    assert visitor.notes.errors == []
