"""The views in a real browser: one server for the demos, one visitor for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visiting import Visitor
from tests.served import Server

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and "open_demo" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demo pages, served."""
    runs = tmp_path_factory.mktemp("demos") / "runs"
    with Server(runs, script=HERE / "demo.py") as server:
        yield server
        assert not server.tracebacks, server.tracebacks[0]


@pytest.fixture(scope="session")
def _tab(browser: Browser, demos: Server) -> Iterator[Visitor]:
    """One tab for all demos: what they are made of is fetched once."""
    visitor = Visitor(browser, demos.url)
    yield visitor
    visitor.close()


GO = """address => {
  history.pushState({}, "", address);
  window.dispatchEvent(new PopStateEvent("popstate", { state: {} }));
}"""
"""As the browser's own back button goes: the app stays loaded, which a page takes a second for."""

OpenDemo = Callable[..., Visitor]


def to_no_demo(page: Page) -> None:
    """To the first page, where nothing that was chosen is left."""
    page.evaluate(GO, "/")
    expect(page.locator(".view")).to_have_count(0)
    expect(page.get_by_text("told None, run 0")).to_be_visible()


@pytest.fixture
def open_demo(browser: Browser, demos: Server, _tab: Visitor) -> Iterator[OpenDemo]:
    """Opens one demo and waits until its view is painted; nothing may go wrong meanwhile.

    What a test opens later is gone to as the browser's back button goes.
    """
    visitors = [_tab]
    _tab.begin()

    def arrive(name: str, show: str = "", **how: object) -> Visitor:
        if how:  # another size, or the dark
            visitors.append(Visitor(browser, demos.url, **how))  # type: ignore[arg-type]
        page, address = visitors[-1].page, f"/demo_{name}?show={show}"
        if page.url.startswith(demos.url):
            to_no_demo(page)
            page.evaluate(GO, address)
        else:
            page.goto(demos.url + address)
        page.locator(".view[data-painted]").first.wait_for(state="attached")
        return visitors[-1]

    yield arrive
    for visitor in visitors:
        visitor.no_mishap()
        (visitor.leave if visitor is _tab else visitor.close)()
