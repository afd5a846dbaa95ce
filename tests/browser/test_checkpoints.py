"""The Checkpoints page by hand: the shelf, every view of a model, the keyboard, the address."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import wait_until

VIEWS = ("Ledger", "Weights", "Norms", "Spectra", "Heads", "Doctor")
MODEL = "shakespeare"


def view(page: Page, name: str) -> Locator:
    return page.get_by_test_id("stMain").get_by_role("radio", name=name, exact=True)


def look_at(visitor: Visitor, name: str) -> None:
    """Choose a view by a click, and wait until it is drawn."""
    view(visitor.page, name).click()
    visitor.asks(show=name)
    visitor.rest()
    visitor.no_traceback()


def test_a_walk_through_every_view(visitor: Visitor) -> None:
    page = visitor.open(f"/checkpoints?model={MODEL}")
    for name in VIEWS[1:]:
        look_at(visitor, name)
        if name == "Weights":
            visitor.drawn("weights_picture")
            expect(page.get_by_text("Each cell is one weight.")).to_be_visible()
        if name == "Norms":
            visitor.drawn("norms_decoder")
        if name == "Spectra":
            chart = page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first
            expect(chart).to_be_visible()
            expect(page.get_by_text("Exact: a singular value").first).to_be_visible()
        if name == "Heads":
            visitor.drawn("head_statistics")
        if name == "Doctor":
            expect(page.get_by_text("Looks trained", exact=True)).to_be_visible()
            expect(visitor.widget("findings").get_by_text("Warning")).to_have_count(0)
    assert visitor.violations() == []
    assert visitor.notes.errors == []


def test_a_button_of_the_shelf_opens_a_model(visitor: Visitor) -> None:
    page = visitor.open("/checkpoints")
    visitor.widget("open_negation").get_by_role("button").click()
    visitor.asks(model="negation")
    expect(page.get_by_role("heading", name="Sentiment with negation")).to_be_visible()
    expect(visitor.widget("open_negation").get_by_role("button")).to_be_disabled()
    visitor.no_traceback()


def test_the_next_layer_shows_the_same_tensor(visitor: Visitor) -> None:
    page = visitor.open(f"/checkpoints?model={MODEL}&show=Weights&layer=0")
    visitor.choose("Tensor: decoder layer 0", "mlp.up_proj.weight")
    visitor.asks(tensor="mlp.up_proj.weight")
    expect(page.get_by_text("decoder.blocks.0.mlp.up_proj.weight")).to_be_visible()
    before = visitor.picture("weights_picture")
    layers = page.get_by_test_id("stSidebar").get_by_role("radiogroup", name="Layer")
    layers.get_by_role("radio", name="1", exact=True).click()
    expect(page.get_by_text("decoder.blocks.1.mlp.up_proj.weight")).to_be_visible()
    wait_until(lambda: visitor.picture("weights_picture") != before, "another picture")
    view(page, "Largest |w|").click()
    expect(page.get_by_text("Each cell is the largest size")).to_be_visible()


def test_the_keyboard_alone_reads_a_norm(visitor: Visitor) -> None:
    page = visitor.open(f"/checkpoints?model={MODEL}&show=Norms")
    visitor.drawn("norms_decoder")
    canvas = visitor.widget("norms_decoder").locator("canvas").first
    canvas.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    sentence = visitor.widget("norms_decoder").locator(".sentence")
    expect(sentence).to_contain_text("Layer 0, k_proj: root mean square 0.0")


def test_the_view_is_chosen_by_the_keyboard(visitor: Visitor) -> None:
    page = visitor.open(f"/checkpoints?model={MODEL}")
    view(page, "Ledger").focus()
    page.keyboard.press("Tab")
    chosen: str = page.evaluate("document.activeElement.innerText")
    if chosen.strip() != "Weights":  # a group of radio buttons may be one stop: arrows walk in it
        view(page, "Ledger").focus()
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    visitor.asks(show="Weights")


def test_an_address_is_a_view(visitor: Visitor, visit: Visit) -> None:
    address = f"/checkpoints?model={MODEL}&show=Weights&tensor=mlp.down_proj.weight&layer=1"
    page = visitor.open(address)
    expect(page.get_by_text("decoder.blocks.1.mlp.down_proj.weight")).to_be_visible()
    seen = visitor.picture("weights_picture")
    friend = visit()
    friend.page.goto(page.url)
    friend.rest()
    friend.shows("weights_picture", seen)


@pytest.mark.parametrize(
    "address",
    [
        "/checkpoints?show=Everything&tensor=..%2F..%2Fetc%2Fpasswd",
        "/checkpoints?show=Weights&tensor=%3Cscript%3Ealert(1)%3C%2Fscript%3E&cell=x",
        "/checkpoints?show=Heads&statistic=Charm&text=",
        "/checkpoints?show=Spectra&axis=-1&tensor=head.bias&layer=99",
    ],
)
def test_nonsense_in_the_address_does_no_harm(visitor: Visitor, address: str) -> None:
    visitor.open(address)
    visitor.no_traceback()
    assert visitor.notes.dialogs == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 1920])
def test_nothing_runs_over_the_edge(visit: Visit, width: int, dark: bool) -> None:
    visitor = visit(width=width, dark=dark)
    for name in VIEWS:
        page = visitor.open(f"/checkpoints?model=translation&show={name}")
        wide: int = page.get_by_test_id("stMain").evaluate("main => main.scrollWidth")
        room: int = page.get_by_test_id("stMain").evaluate("main => main.clientWidth")
        assert wide <= room
