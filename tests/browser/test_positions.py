"""The position lab, by hand: numbers on the screen are recomputed from the core."""

from __future__ import annotations

import torch
from playwright.sync_api import expect

from explorer import library, reading
from explorer.analysis.positions import backwards, moved, swapped
from explorer.library import Opened
from explorer.numbers import three
from explorer.reading import Reading
from models.positional import sinusoids
from tests.browser.visiting import Visitor

NAMES = ("Sinusoidal", "Learned", "Rotary", "Relative", "ALiBi", "None")


def read(model: str, text: str) -> tuple[Opened, Reading]:
    opened = library.open_model(model)
    return opened, reading.read(opened, text)


def test_positional_encodings_compare_six_schemes_of_ours(visitor: Visitor) -> None:
    page = visitor.open("/positions?model=shakespeare")
    own = page.get_by_text("This is the chosen model's own scheme.")
    expect(own).to_be_visible()
    group = visitor.widget("scheme").get_by_role("radio")
    expect(group).to_have_count(6)
    expect(group.first).to_have_text("Sinusoidal")
    for name in NAMES[1:]:
        page.get_by_role("radio", name=name, exact=True).click()
        visitor.asks(scheme=name)
        visitor.rest()
        expect(page.get_by_text("The chosen model uses another one: Sinusoidal.")).to_be_visible()
        if name == "Learned":
            expect(page.get_by_text("This model has no such trained positions")).to_be_visible()
        elif name == "None":
            expect(page.get_by_text("So there is nothing to draw")).to_be_visible()
        else:
            visitor.drawn("products")
    page.get_by_role("radio", name="Sinusoidal", exact=True).click()
    expect(own).to_be_visible()
    visitor.rest()
    value = float(sinusoids(torch.arange(3), 128)[2, 1])
    said = visitor.point("positions_table", 2, 1)
    expect(said).to_contain_text(f"Position 2, dimension 1: {three(value)}")


def test_the_pair_the_position_and_an_odd_width_are_in_the_link(visitor: Visitor) -> None:
    page = visitor.open("/positions?model=shakespeare&dimensions=4&place=900")
    visitor.says("not “900”; it is 3.")
    visitor.open("/positions?model=shakespeare&dimensions=4&place=7")
    visitor.says("The hands of 6 pairs at position 7")
    visitor.says(f"One turn takes {three(2 * torch.pi * 10_000 ** (8 / 128))} positions.")
    visitor.turn_to("An odd width, 7")
    visitor.asks(table_width="An odd width, 7")
    visitor.says("7 numbers are 3 pairs and a last sine")
    page.reload()
    visitor.rest()
    value = float(sinusoids(torch.arange(2), 7)[1, 6])
    said = visitor.point("positions_table", 1, 6)
    expect(said).to_contain_text(f"Position 1, dimension 6: {value:.4f}")


def test_without_positions_a_permuted_sentence_changes_nothing(visitor: Visitor) -> None:
    text = "the food was not very good"
    page = visitor.open("/positions?model=negation&lab=Another+order&text=" + text)
    opened, found = read("negation", text)
    result = moved(opened, found, backwards(found), "none")
    expect(page.get_by_text("Nothing changes but the order")).to_be_visible()
    expect(page.get_by_text(f"the largest change is {three(result.largest)}")).to_be_visible()
    page.get_by_role("radio", name="Rotary", exact=True).click()
    expect(page.get_by_text("Not the scheme it was trained with")).to_be_visible()
    result = moved(opened, found, backwards(found), "rotary")
    change = three(100 * result.largest)
    expect(page.get_by_text(f"the last vectors change by up to {change} %")).to_be_visible()


def test_swapped_tokens_and_an_own_order_of_a_causal_model(visitor: Visitor) -> None:
    text = "To be, or not to be"
    page = visitor.open(f"/positions?model=shakespeare&lab=Another+order&scheme=None&text={text}")
    page.get_by_role("radio", name="Swap two tokens").click()
    visitor.asks(order_of="Swap two tokens")
    visitor.choose("One token", "2 ·")
    visitor.choose("The other", "5 ·")
    opened, found = read("shakespeare", text)
    change = three(100 * moved(opened, found, swapped(found, 2, 5), "none").largest)
    expect(page.get_by_text(f"the last vectors change by up to {change} %")).to_be_visible()
    expect(page.get_by_text("The order gets in by its causal mask")).to_be_visible()
    page.get_by_role("radio", name="My own order").click()
    places = page.get_by_label("Places in their new order")
    places.fill("0 1 1 2")
    places.press("Enter")
    expect(page.get_by_text("“0 1 1 2” is no order of 8 tokens")).to_be_visible()
    places.fill("0 7 6 5 4 3 2 1")
    places.press("Enter")
    order = [0, 7, 6, 5, 4, 3, 2, 1]
    change = three(100 * moved(opened, found, order, "none").largest)
    expect(page.get_by_text(f"the last vectors change by up to {change} %")).to_be_visible()
