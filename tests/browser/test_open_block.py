"""A layer opened in the picture of the pass, and through its parts to the other pages."""

import re

from playwright.sync_api import Locator, expect

from tests.browser.visiting import Visitor

TEXT = "the white cat does not see the black house"
ADDRESS = f"/?model=translation&text={TEXT.replace(' ', '+')}&part=Decoder&head=0&answer=3&block=d0"


def part(visitor: Visitor, name: str) -> Locator:
    """The first part of the open block whose label begins so."""
    inside = visitor.widget("pass_map").locator(".inside")
    return inside.get_by_role("button", name=re.compile(f"^{name}")).first


def test_every_kind_of_door_leads_to_its_page_with_layer_head_and_token(visitor: Visitor) -> None:
    for name, title, page, choices in (
        ("Queries", "Query and key", "query_key", {}),
        ("Scores", "Head, step by step", "head_steps", {"up_to": "scaled", "held": "q3"}),
        ("Masked scores", "Masks", "masks", {"example": "Your sentence"}),
        ("Attention weights", "Attention", "attention", {"held": "q3"}),
        ("Up projection", "Forward pass", "forward_pass", {"stage": "decoder.0.mlp.up"}),
        ("Encoder output", "Forward pass", "forward_pass", {"stage": "encoder.final"}),
    ):
        visitor.open(ADDRESS)
        part(visitor, name).press("Enter")
        visitor.titled(title)
        visitor.asks(head="0", **choices)
        visitor.rest()
        assert f"/{page}?" in visitor.page.url
        if page == "query_key":
            query = visitor.page.get_by_role("combobox", name="Query", exact=True)
            expect(query).to_have_value(re.compile("^3 · "))


def test_a_layer_is_opened_by_a_click_and_by_a_key_and_stays_in_the_address(
    visitor: Visitor,
) -> None:
    page = visitor.open(ADDRESS.replace("&block=d0", ""))
    visitor.drawn("pass_map")
    canvas = visitor.widget("pass_map").locator(".stage > canvas")
    box = canvas.bounding_box()
    assert box is not None
    canvas.click(position={"x": 12, "y": box["height"] / 2})  # the number of the layer
    visitor.asks(block="e0")
    expect(part(visitor, "Scores")).to_be_visible()
    part(visitor, "Scores").press("Escape")
    expect(part(visitor, "Scores")).to_be_hidden()
    page.keyboard.press("Enter")
    visitor.asks(block="d0")
    page.reload()
    expect(part(visitor, "Encoder output")).to_be_visible()


def test_a_small_picture_chooses_the_head_of_all_pages(visitor: Visitor) -> None:
    visitor.open(ADDRESS)
    scores = part(visitor, "Scores, head 0")
    scores.locator("canvas").click(position={"x": 50, "y": 80})
    expect(part(visitor, "Scores, head 1")).to_be_visible()
    expect(visitor.page.get_by_role("combobox", name="Head", exact=True)).to_have_value("1")
