"""Heads found, compared and followed through the layers, and the logit lens, by hand."""

import re

from playwright.sync_api import expect

from tests.browser.visiting import Visitor
from tests.served import wait_until

TEXT = "the+capital+of+france+is+paris"


def test_heads_are_ranked_and_one_is_chosen_by_its_rank_its_place_or_its_share(
    visitor: Visitor,
) -> None:
    page = visitor.open("/heads?model=induction&text=xyzwxyzwxy")
    visitor.choose("Metric", "Induction score")
    expect(page.get_by_text("Induction score of every head", exact=True)).to_be_visible()
    visitor.drawn("best_heads")
    first, third = (visitor.widget("best_heads").get_by_role("button").nth(at) for at in (0, 2))
    expect(first).to_contain_text("layer 1")
    assert float(first.locator(".number").inner_text()) > 0.5, "it was trained to continue repeats"
    third.click()
    expect(third).to_have_attribute("aria-pressed", "true")
    visitor.click("heads_table", 0, 1)
    expect(page.get_by_text(re.compile("Layer 0, head 1$"))).to_be_visible()
    page.get_by_test_id("stMain").get_by_role("link", name="Attention maps of every head").click()
    visitor.titled("Attention maps")
    expect(page.get_by_text("Layer 0, head 1", exact=False).first).to_be_visible()
    visitor.follow("Logit lens")
    expect(visitor.point("made_of", 0, 1)).to_contain_text("Layer 0, head 1: ")
    visitor.click("made_of", 0, 0)
    expect(visitor.widget("head").get_by_role("combobox")).to_have_value("0")


def test_pairs_are_arranged_and_a_token_is_followed_through_the_layers(visitor: Visitor) -> None:
    page = visitor.open(f"/heads?model=bert&side=Similarity&layer=0&head=0&text={TEXT}")
    same = "layer 0 · head 2 and layer 0 · head 2: 1.00"
    expect(visitor.point("similarity", 2, 2)).to_contain_text(same)
    visitor.click("similarity", 11, 0)
    expect(page.get_by_text("Most similar to layer 0, head 0")).to_have_count(0)
    visitor.asks(head="3")
    visitor.rest()
    visitor.away()
    before = visitor.picture("similarity")
    visitor.turn_to("By similarity")
    visitor.asks(arranged="By similarity")
    visitor.changed("similarity", before)
    visitor.turn_to("Flow")
    visitor.away()
    before = visitor.picture("flow")
    visitor.choose("Token", "1 ")
    wait_until(lambda: visitor.query().get("flow_to", "").startswith("1"), "the token's address")
    again = visitor.changed("flow", before)
    visitor.rest()
    page.reload()
    visitor.rest()
    visitor.shows("flow", again)
