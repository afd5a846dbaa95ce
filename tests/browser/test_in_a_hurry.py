"""A reader who clicks faster than the app answers keeps a page that works."""

from __future__ import annotations

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


def test_a_page_outlives_quick_clicks(visitor: Visitor, server: Server) -> None:
    page = visitor.open("/attention")
    visitor.drawn()
    # Ends on “Tokens”, as the last of every three; the pauses fall before, in and after a run.
    page.evaluate(CLICK_AROUND, [VIEWS, 300, [0, 5, 20, 60, 120, 40, 10]])
    visitor.rest()
    expect(page.get_by_test_id("stApp")).to_have_attribute(
        "data-test-connection-state", "CONNECTED"
    )
    visitor.asks(view=VIEWS[-1])
    visitor.no_traceback()
    assert not server.tracebacks
