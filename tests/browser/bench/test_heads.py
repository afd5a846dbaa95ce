"""Heads found, compared and followed through the layers, by hand: on our models and on others."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Position, expect

from tests.browser.visiting import Visitor
from tests.served import wait_until

TEXT = "the+capital+of+france+is+paris"


def cell(visitor: Visitor, key: str, row: int, column: int) -> tuple[Locator, Position]:
    """The canvas under this key, and the middle of one of its cells."""
    visitor.drawn(key)
    view = visitor.widget(key).locator("[data-cells]")
    left, top, *sizes = map(float, str(view.get_attribute("data-cells")).split())
    wide, high = sizes[0], sizes[-1]
    at = Position(x=left + (column + 0.5) * wide, y=top + (row + 0.5) * high)
    return view.locator("canvas").first, at


def point(visitor: Visitor, key: str, row: int, column: int) -> str:
    """What the view under this key says of one of its cells."""
    canvas, at = cell(visitor, key, row, column)
    canvas.hover(position=at)
    sentence = visitor.widget(key).locator(".sentence:not(.idle)")
    return sentence.inner_text()


def best(visitor: Visitor, key: str, place: int) -> Locator:
    """One of the small pictures in a row, the first is 1."""
    visitor.drawn(key)
    return visitor.widget(key).get_by_role("button").nth(place - 1)


@pytest.mark.parametrize(
    ("model", "metric", "heads"),
    [("induction", "Induction", 4), ("bert", "Previous", 12), ("t5", "First", 6)],
)
def test_head_metrics_ranked_finder(visitor: Visitor, model: str, metric: str, heads: int) -> None:
    page = visitor.open(f"/heads?model={model}")
    visitor.choose("Metric", metric)
    expect(page.get_by_text(f"{metric} of every head", exact=True)).to_be_visible()
    first, third = best(visitor, "best_heads", 1), best(visitor, "best_heads", 3)
    expect(first).to_contain_text(f"1 of {heads}")
    place = str(third.get_attribute("aria-label")).partition(" of ")[0]
    assert place in {"1", "2", "3"}, "those that read alike share a place"
    third.click()
    expect(
        page.get_by_text(f"{place} of {heads} by {metric.lower()}, highest first")
    ).to_be_visible()
    expect(third).to_have_attribute("aria-pressed", "true")
    canvas, at = cell(visitor, "heads_table", 0, 1)
    canvas.click(position=at)
    expect(page.get_by_text("Layer 0, head 1", exact=True)).to_be_visible()
    assert point(visitor, "heads_table", 0, 1).startswith("Layer 0, head 1: ")
    page.get_by_test_id("stMain").get_by_role("link", name="Every head of every layer").click()
    visitor.titled("Attention")
    expect(page.get_by_text("Layer 0, head 1", exact=False).first).to_be_visible()
    visitor.no_traceback()


def test_the_head_that_learnt_induction_is_found_in_ones_own_text(visitor: Visitor) -> None:
    page = visitor.open("/heads?model=induction&metric=Induction")
    visitor.type("xyzwxyzwxy")
    expect(page.get_by_text("here 11, less those", exact=False)).to_be_visible()
    first = best(visitor, "best_heads", 1)
    expect(first).to_contain_text("layer 1")
    value = float(first.locator(".number").inner_text())
    assert value > 0.5, "the model was trained to continue repeats"


@pytest.mark.parametrize(("model", "heads"), [("shakespeare", 8), ("bert", 12)])
def test_head_similarity(visitor: Visitor, model: str, heads: int) -> None:
    page = visitor.open(f"/heads?model={model}&side=Likeness&layer=0&head=0&text={TEXT}")
    expect(page.get_by_text("Most like layer 0, head 0")).to_be_visible()
    expect(best(visitor, "nearest_heads", 1)).to_contain_text(f"1 of {heads - 1}")
    first, second = (
        float(best(visitor, "nearest_heads", at).locator(".number").inner_text()) for at in (1, 2)
    )
    assert 1 >= first >= second > 0
    same = "layer 0 · head 2 and layer 0 · head 2: 1.00"
    assert point(visitor, "likeness", 2, 2).startswith(same)
    canvas, at = cell(visitor, "likeness", heads - 1, 0)
    canvas.click(position=at)
    expect(page.get_by_text("Most like layer 0, head 0")).to_have_count(0)
    visitor.asks(head="3")
    before = visitor.picture("likeness")
    page.get_by_test_id("stMain").get_by_text("By likeness", exact=True).click()
    visitor.asks(arranged="By likeness")
    wait_until(lambda: visitor.picture("likeness") != before, "another order")
    visitor.no_traceback()


@pytest.mark.parametrize("model", ["shakespeare", "bert"])
def test_rollout_and_attention_flow(visitor: Visitor, model: str) -> None:
    page = visitor.open(f"/heads?model={model}&side=Rollout&layer=0&head=0&text={TEXT}")
    visitor.drawn("rollout")
    every = visitor.picture("rollout")
    last = {"shakespeare": 1, "bert": 2}[model]
    assert f"after layer {last} is made of" in point(visitor, "rollout", 2, 1)
    page.mouse.move(0, 0)
    visitor.choose("Through layer", "0")
    visitor.asks(through="0")
    wait_until(lambda: visitor.picture("rollout") != every, "another picture")
    visitor.choose("Through layer", str(last))
    wait_until(lambda: "through" not in visitor.query(), "the last layer is the usual one")
    page.get_by_text("Flow", exact=True).click()
    visitor.drawn("flow")
    flow, rolled = (float(point(visitor, "flow", row, 1).split()[-1]) for row in (0, 1))
    assert flow >= rolled - 1e-3, "no less flows than rolls out"
    page.mouse.move(0, 0)
    before = visitor.picture("flow")
    visitor.choose("Token", "1 ")
    wait_until(lambda: visitor.query().get("flow_to", "").startswith("1"), "the token's address")
    wait_until(lambda: visitor.picture("flow") != before, "another token")
    visitor.rest()
    page.mouse.move(0, 0)
    again = visitor.picture("flow")
    page.reload()
    visitor.rest()
    page.mouse.move(0, 0)
    wait_until(lambda: visitor.picture("flow") == again, "the same view after a reload")
    visitor.no_traceback()
    assert visitor.notes.errors == []
    assert visitor.violations() == []


def test_rollout_of_an_encoder_decoder_follows_one_stack(visitor: Visitor) -> None:
    page = visitor.open("/heads?model=t5&side=Rollout&part=Cross")
    expect(page.get_by_text("Cross-attention leads from one stack into another")).to_be_visible()
    page.get_by_test_id("stMain").get_by_role("button", name="Decoder").click()
    visitor.drawn("rollout")
    visitor.asks(part="Decoder")
    expect(page.get_by_text("What the decoder takes from the encoder's text")).to_be_visible()
    visitor.no_traceback()


def test_what_the_address_asks_for_in_vain_is_said_until_something_is_chosen(
    visitor: Visitor,
) -> None:
    page = visitor.open("/heads?model=bert&metric=Wisdom")
    note = page.get_by_text("“Metric” has no “Wisdom” here; showing Previous.")
    expect(note).to_be_visible()
    visitor.choose("Metric", "Entropy")
    expect(note).to_have_count(0)
