"""A Chromium, a running app, and visitors; everything is closed again at the end."""

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
        if item.path.is_relative_to(HERE) and item.path.name != "test_chromium.py":
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.flaky(reruns=1))  # the summary names each that needed it
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(300))


def serve(folder: Path, **env: str) -> Iterator[Server]:
    """A server that must end without a traceback and without a process left over."""
    with Server(folder, env=env) as server:
        yield server
        server.stop()
        assert not server.tracebacks, server.tracebacks[0]
        assert not server.leftovers()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One running app for the tests of a file."""
    yield from serve(tmp_path_factory.mktemp("served") / "runs")


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[Server]:
    """A running app nobody has visited yet."""
    yield from serve(tmp_path / "runs")


Visit = Callable[..., Visitor]


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    """Makes visitors of the file's server."""
    visitors: list[Visitor] = []

    def arrive(url: str = server.url, **how: object) -> Visitor:
        visitors.append(Visitor(browser, url, **how))  # type: ignore[arg-type]
        return visitors[-1]

    yield arrive
    for visitor in visitors:
        visitor.close()


@pytest.fixture
def visitor(visit: Visit) -> Visitor:
    """One visitor of the file's server."""
    return visit()
