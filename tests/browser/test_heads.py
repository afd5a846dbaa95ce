"""Heads found, compared and followed through the layers, and the logit lens, by hand."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.visiting import Visitor
from tests.served import wait_until

TEXT = "the+capital+of+france+is+paris"


def best(visitor: Visitor, key: str, place: int) -> Locator:
    """One of the small pictures in a row, the first is 1."""
    visitor.drawn(key)
    return visitor.widget(key).get_by_role("button").nth(place - 1)


def test_the_finder_ranks_the_heads_over_ones_own_text(visitor: Visitor) -> None:
    page = visitor.open("/heads?model=induction")
    visitor.choose("Metric", "Induction")
    expect(page.get_by_text("Induction of every head", exact=True)).to_be_visible()
    visitor.type("xyzwxyzwxy")
    expect(page.get_by_text("here 11, less those", exact=False)).to_be_visible()
    first, third = best(visitor, "best_heads", 1), best(visitor, "best_heads", 3)
    expect(first).to_contain_text("1 of 4")
    expect(first).to_contain_text("layer 1")
    assert float(first.locator(".number").inner_text()) > 0.5, "it was trained to continue repeats"
    place = str(third.get_attribute("aria-label")).partition(" of ")[0]
    third.click()
    expect(page.get_by_text(f"{place} of 4 by induction, highest first")).to_be_visible()
    expect(third).to_have_attribute("aria-pressed", "true")
    visitor.click("heads_table", 0, 1)
    expect(page.get_by_text("Layer 0, head 1", exact=True)).to_be_visible()
    expect(visitor.point("heads_table", 0, 1)).to_contain_text("Layer 0, head 1: ")
    page.get_by_test_id("stMain").get_by_role("link", name="Every head of every layer").click()
    visitor.titled("Attention")
    expect(page.get_by_text("Layer 0, head 1", exact=False).first).to_be_visible()


def test_likeness_compares_and_arranges_all_pairs_of_heads(visitor: Visitor) -> None:
    page = visitor.open(f"/heads?model=bert&side=Likeness&layer=0&head=0&text={TEXT}")
    expect(page.get_by_text("Most like layer 0, head 0")).to_be_visible()
    expect(best(visitor, "nearest_heads", 1)).to_contain_text("1 of 11")
    same = "layer 0 · head 2 and layer 0 · head 2: 1.00"
    expect(visitor.point("likeness", 2, 2)).to_contain_text(same)
    visitor.click("likeness", 11, 0)
    expect(page.get_by_text("Most like layer 0, head 0")).to_have_count(0)
    visitor.asks(head="3")
    visitor.rest()
    visitor.away()
    before = visitor.picture("likeness")
    visitor.turn_to("By likeness")
    visitor.asks(arranged="By likeness")
    visitor.changed("likeness", before)


def test_rollout_and_flow_through_layers_and_to_a_token(visitor: Visitor) -> None:
    page = visitor.open(f"/heads?model=bert&side=Rollout&layer=0&head=0&text={TEXT}")
    every = visitor.picture("rollout")
    expect(visitor.point("rollout", 2, 1)).to_contain_text("after layer 2 is made of")
    visitor.away()
    visitor.choose("Through layer", "0")
    visitor.asks(through="0")
    visitor.changed("rollout", every)
    visitor.choose("Through layer", "2")
    wait_until(lambda: "through" not in visitor.query(), "the last layer is the usual one")
    visitor.turn_to("Flow")
    flow, rolled = (float(visitor.point("flow", row, 1).inner_text().split()[-1]) for row in (0, 1))
    assert flow >= rolled - 1e-3, "no less flows than rolls out"
    visitor.away()
    before = visitor.picture("flow")
    visitor.choose("Token", "1 ")
    wait_until(lambda: visitor.query().get("flow_to", "").startswith("1"), "the token's address")
    again = visitor.changed("flow", before)
    visitor.rest()
    page.reload()
    visitor.rest()
    visitor.shows("flow", again)


def test_rollout_of_an_encoder_decoder_follows_one_stack(visitor: Visitor) -> None:
    page = visitor.open("/heads?model=t5&side=Rollout&part=Cross")
    expect(page.get_by_text("Cross-attention leads from one stack into another")).to_be_visible()
    page.get_by_test_id("stMain").get_by_role("button", name="Decoder").click()
    visitor.drawn("rollout")
    visitor.asks(part="Decoder")
    expect(page.get_by_text("What the decoder takes from the encoder's text")).to_be_visible()


def test_what_the_address_asks_in_vain_is_said_until_something_is_chosen(visitor: Visitor) -> None:
    page = visitor.open("/heads?model=bert&metric=Wisdom")
    note = page.get_by_text("“Metric” has no “Wisdom” here; showing Previous.")
    expect(note).to_be_visible()
    visitor.choose("Metric", "Entropy")
    expect(note).to_have_count(0)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("model=induction&text=abcabcab", "The answer: c"),
        ("model=negation&text=the+food+was+not+good", "The answer: negative"),
    ],
)
def test_the_lens_answers_after_every_layer_and_says_what_a_logit_is_made_of(
    visitor: Visitor, asked: str, answer: str
) -> None:
    page = visitor.open(f"/lens?{asked}")
    expect(page.get_by_text(answer)).to_be_visible()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
    expect(page.get_by_text("the sum of all parts differs from it by")).to_be_visible()
    expect(visitor.point("made_of", 0, 1)).to_contain_text("Layer 0, head 1: ")
    visitor.click("made_of", 0, 0)
    heads = page.get_by_test_id("stSidebar").get_by_role("radiogroup", name="Head")
    expect(heads.get_by_role("radio", name="0", exact=True)).to_be_checked()
