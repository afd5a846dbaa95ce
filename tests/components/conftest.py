"""The views in a real browser: one server and one page, which goes from demo to demo."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visiting import DRAWN_ANEW, RESTS, EndOfPage, Visitor
from tests.served import Server
from tests.whole_numbers import UNSEEN

HERE = Path(__file__).parent
NOTE_WRITING = """{
  const {prototype} = CanvasRenderingContext2D, {fillText, drawImage, clearRect} = prototype;
  prototype.fillText = function (text, x, y, ...more) {
    const wide = this.measureText(text).width;
    const left = {center: x - wide / 2, right: x - wide, end: x - wide}[this.textAlign] ?? x;
    (this.canvas.texts ??= []).push([text, left, left + wide, y]);
    return fillText.call(this, text, x, y, ...more);
  };
  prototype.drawImage = function (picture, ...more) {
    (this.canvas.texts ??= []).push(...picture.texts ?? []);
    return drawImage.call(this, picture, ...more);
  };
  prototype.clearRect = function (...box) {
    this.canvas.texts = [];
    return clearRect.call(this, ...box);
  };
}"""
"""Laid before a page opens: a canvas notes which texts were painted last, and where each stands."""
GO = """address => {
  history.pushState({}, "", address);
  window.dispatchEvent(new PopStateEvent("popstate", { state: {} }));
}"""
"""As the browser's own back button goes: the app stays loaded, which a page takes a second for."""
TOLD = """words => [...document.querySelectorAll("[data-testid=stText]")]
  .some(each => each.textContent.startsWith(words))"""
PAINTED = """() => {
  const found = [document], views = [];
  for (const root of found) {
    if (root.querySelector("[data-testid=stException]")) return true;
    views.push(...root.querySelectorAll(".view"));
    for (const {shadowRoot} of root.querySelectorAll("*")) if (shadowRoot) found.push(shadowRoot);
  }
  return views.length && views.every(view => "painted" in view.dataset);
}"""
"""All views are drawn, or there is an error; asked in every frame, where `expect` waits longer."""

OpenDemo = Callable[..., Visitor]
Text = tuple[str, float, float, float]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demo pages, served."""
    runs = tmp_path_factory.mktemp("demos") / "runs"
    with Server(runs, script=HERE / "demo.py") as server:
        yield server
        assert not server.tracebacks, server.tracebacks[0]
        server.kill()  # nothing is left to be tidied


@pytest.fixture(scope="session")
def _tab(browser: Browser, demos: Server) -> Iterator[Visitor]:
    """One tab for all demos, loaded once."""
    visitor = Visitor(browser, demos.url)
    visitor.context.add_init_script(NOTE_WRITING)
    visitor.fetch("/")
    yield visitor
    visitor.close()


def painted(visitor: Visitor) -> None:
    """Wait for the frame after the next: what was asked for last is drawn by then."""
    visitor.page.evaluate(DRAWN_ANEW)


def told(visitor: Visitor, what: str) -> None:
    """Wait until the page was told this last."""
    visitor.page.wait_for_function(TOLD, arg=f"told {what}")


def texts_on(visitor: Visitor, key: str) -> list[Text]:
    """What is written on the canvas under this key, without the marks around a label."""
    found = visitor.widget(key).locator("canvas").first.evaluate("canvas => canvas.texts ?? []")
    return [(text.translate(UNSEEN), *place) for text, *place in found]


def go(visitor: Visitor, address: str) -> None:
    """Go there, and wait until the server has run a page: an address on top may be lost."""
    with visitor.socket.expect_event("framereceived", EndOfPage(), timeout=60_000):
        visitor.page.evaluate(GO, address)


def to_no_demo(visitor: Visitor) -> None:
    """To the first page, where nothing that was chosen is left.

    Two demos may have views of two kinds under one key, as no two pages of the app have.
    """
    page = visitor.page
    if urlsplit(page.url).path != "/":
        go(visitor, "/")
    told(visitor, "None, run 0")
    assert page.evaluate(RESTS, 30)
    expect(page.locator(".view")).to_have_count(0)
    page.evaluate("globalThis.explorerChoices?.clear()")


def open_in(visitor: Visitor, name: str, show: str = "", more: str = "") -> Page:
    """Go to a demo, and wait until its views are painted and stand still."""
    page = visitor.page
    to_no_demo(visitor)
    go(visitor, f"/demo_{name}?show={show}{more}")
    page.wait_for_function(PAINTED)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    told(visitor, "")
    expect(page.locator(".view:not([data-painted])")).to_have_count(0)
    visitor.settled()
    return page


@pytest.fixture
def open_demo(_tab: Visitor) -> Iterator[OpenDemo]:
    """Opens one demo and waits until its views are painted; nothing may go wrong meanwhile.

    Who is there asks for less motion, unless `moves`.
    """
    _tab.begin()

    def arrive(name: str, show: str = "", more: str = "", *, moves: bool = False) -> Visitor:
        if moves:
            _tab.page.emulate_media(reduced_motion="no-preference")
        open_in(_tab, name, show, more)
        return _tab

    yield arrive
    _tab.no_mishap()
    to_no_demo(_tab)
