"""The picture of a circuit in the running app: a head and an edge are picked in it."""

from playwright.sync_api import expect

from tests.browser.circuit_places import Drawn
from tests.browser.truth.circuits import ASKS_CIRCUIT
from tests.browser.visiting import Visitor


def test_a_head_that_is_picked_is_that_of_the_bar_and_opens_its_card(visitor: Visitor) -> None:
    page = visitor.open(f"/circuits?{ASKS_CIRCUIT}")
    visitor.drawn("circuit_map")
    drawn = Drawn(visitor)
    (name, *_) = (each for each in drawn.items() if each.startswith("0."))
    part = name.partition("@")[0]
    drawn.click(name)
    visitor.asks(drawn_part=part, layer="0")
    expect(drawn.view.locator(".card .title").first).to_have_text(f"Head {part}")
    visitor.drawn("card_map")
    visitor.rest()
    drawn.canvas.focus()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    visitor.asks(drawn_part="e0")
    page.reload()
    visitor.drawn("circuit_map")
    expect(drawn.view.locator(".card")).to_contain_text("edge 1 of")
    visitor.asks(drawn_part="e0", layer="0")
