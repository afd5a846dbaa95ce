"""A button that leads to another page takes along what a link had chosen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.visiting import Visitor

OURS = {"model": "negation", "text": "the food was not good"}
PUBLISHED = {"model": "gpt2", "text": "5 17 3 9", "layer": "1"}
STAGE = "stage={stack}.{layer}.self_attn.weights&{stack}_token=2"


@pytest.mark.parametrize("chosen", [OURS, PUBLISHED], ids=["ours", "published"])
def test_a_button_to_another_page_keeps_what_a_cold_link_chose(
    visitor: Visitor, chosen: dict[str, str]
) -> None:
    asked = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in chosen.items())
    stack = "decoder" if chosen is PUBLISHED else "encoder"
    stage = STAGE.format(stack=stack, layer=chosen.get("layer", "0"))
    page = visitor.open(f"/walk?{asked}&{stage}")
    page.get_by_role("button", name="This head, step by step", exact=True).click()
    visitor.titled("Head, step by step")
    visitor.asks(**chosen)
    visitor.rest()
    page.reload()
    visitor.rest()
    expect(page.get_by_label("Your sentence", exact=True)).to_have_value(chosen["text"])
    visitor.asks(**chosen)
    page.get_by_role("button", name="This head in the whole pass", exact=True).click()
    visitor.titled("The whole pass")
    visitor.asks(**chosen)
    visitor.follow("Logit lens")
    visitor.asks(**chosen)
