"""The views in a real browser: one server for the demos, one visitor for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

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


OpenDemo = Callable[..., Visitor]


@pytest.fixture
def open_demo(browser: Browser, demos: Server, _tab: Visitor) -> Iterator[OpenDemo]:
    """Opens one demo and waits until its view is painted; nothing may go wrong meanwhile."""
    visitors = [_tab]
    _tab.begin()

    def arrive(name: str, show: str = "", **how: object) -> Visitor:
        if how:  # another size, or the dark
            visitors.append(Visitor(browser, demos.url, **how))  # type: ignore[arg-type]
        page = visitors[-1].page
        page.goto(f"{demos.url}/demo_{name}?show={show}")
        page.locator(".view[data-painted]").first.wait_for(state="attached")
        return visitors[-1]

    yield arrive
    for visitor in visitors:
        visitor.no_mishap()
        (visitor.leave if visitor is _tab else visitor.close)()
