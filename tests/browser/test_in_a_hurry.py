"""A reader who clicks faster than the app answers keeps a page that works."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.visiting import Visitor
from tests.served import Server

VIEWS = ("Matrix", "Lines", "Tokens")
CLICK_AROUND = """async ([views, clicks, pauses]) => {
  for (let click = 0; click < clicks; click++) {
    const name = views[click % views.length];
    const options = [...document.querySelectorAll('[data-testid="stMain"] [role="radio"]')];
    options.find((option) => option.innerText.trim() === name)?.click();
    await new Promise((resume) => setTimeout(resume, pauses[click % pauses.length]));
  }
}"""
CHOOSE_AND_CLICK = """(canvas, [name, row, column]) => {
  const options = [...document.querySelectorAll('[data-testid="stMain"] [role="radio"]')];
  options.find((option) => option.innerText.trim() === name).click();
  const [left, top, wide, high] = canvas.closest("[data-cells]").dataset.cells.split(" ");
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new MouseEvent("click", {
    clientX: box.left + +left + wide * (column + 0.4),
    clientY: box.top + +top + high * (row + 0.4),
  }));
}"""
CLICK_ON = """async ([clicks, pause]) => {
  for (let click = 0; click < clicks; click++) {
    const buttons = [...document.querySelectorAll('[data-testid="stMain"] button')];
    buttons.find((button) => button.innerText.trim().startsWith("Next"))?.click();
    await new Promise((resume) => setTimeout(resume, pause));
  }
}"""


def whole(visitor: Visitor, server: Server) -> None:
    """Nothing was lost: neither the page, nor the server it hears of."""
    visitor.rest()
    expect(visitor.page.get_by_test_id("stApp")).to_have_attribute(
        "data-test-connection-state", "CONNECTED"
    )
    visitor.no_traceback()
    assert not visitor.notes.errors, visitor.notes.errors
    assert not server.tracebacks


def test_a_page_outlives_quick_clicks(visitor: Visitor, server: Server) -> None:
    page = visitor.open("/attention")
    visitor.drawn()
    # Ends on “Tokens”, as the last of every three; the pauses fall before, in and after a run.
    page.evaluate(CLICK_AROUND, [VIEWS, 300, [0, 5, 20, 60, 120, 40, 10]])
    whole(visitor, server)
    visitor.asks(view=VIEWS[-1])


@pytest.mark.parametrize("address", ["/learning?model=translation", "/walk?model=shakespeare"])
def test_a_part_drawn_alone_outlives_quick_steps(
    visitor: Visitor, server: Server, address: str
) -> None:
    """What waits of a drawing that is not wanted any more names places that the next lacks."""
    for pause in (5, 10, 10, 15, 20, 25, 30, 35):
        page = visitor.open(address)
        expect(page.get_by_role("button", name="Next").first).to_be_enabled()
        page.evaluate(CLICK_ON, [12, pause])
        whole(visitor, server)


def test_a_click_does_what_was_chosen_just_before(visitor: Visitor, server: Server) -> None:
    """The server may hear of both at once, with no drawing of the page between them."""
    visitor.open("/edits?model=shakespeare&text=To+be&look=Every+head")
    visitor.drawn("heads_off")
    canvas = visitor.widget("heads_off").locator("canvas")
    canvas.evaluate(CHOOSE_AND_CLICK, ["Ablates the head", 0, 2])
    expect(visitor.widget("edits_made").get_by_text("Layer 0, head 2 to zero")).to_be_visible()
    whole(visitor, server)
