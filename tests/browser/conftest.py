"""One running app and one browser for all tests of a process; everything is closed at the end."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from explorer.system.limits import MB
from explorer.text import character_tokenizer
from explorer.text.token import DECODER
from tests import proxy, tiny
from tests.browser.visiting import Visitor
from tests.served import Server

HERE = Path(__file__).parent
NEEDS_NONE = ("test_chromium.py",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.name not in NEEDS_NONE:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def long_gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published model that reads 2,048 tokens, with one of ours beside it."""
    longer = tmp_path_factory.mktemp("long")
    letters = character_tokenizer("abcdefghijklmnopqrstuvwxyz .", DECODER)
    tiny.save_model(longer, "long", letters, "a bc", n_layers=2, n_heads=4, max_len=2_048)
    return tiny.long_gpt2(longer / "long-gpt2")


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory, published: Path, long_gpt2: Path
) -> Iterator[Server]:
    """The app beside bert, gpt2, t5 and torn as the reference library saves them, and two long."""
    with Server(
        tmp_path_factory.mktemp("served") / "runs",
        env={
            "EXPLORER_MODELS": os.pathsep.join(map(str, (published, long_gpt2.parent))),
            "HF_HUB_OFFLINE": "1",
            "EXPLORER_LIMIT_UPLOADS_RECEIVING_OF_READER": f"{20 * MB}",
            **proxy.SHARED,
        },
    ) as server:
        yield server
        server.stop()
        assert not server.tracebacks, server.tracebacks[0]
        assert not server.leftovers()


@pytest.fixture(scope="session")
def _tab(browser: Browser, server: Server) -> Iterator[Visitor]:
    """One tab for all tests: what the app is made of is fetched once."""
    visitor = Visitor(browser, server.url)
    yield visitor
    visitor.close()


@pytest.fixture(scope="module")
def _tab_of_module(_tab: Visitor) -> Iterator[Visitor]:
    """The first test of a file loads the app; the others reach their pages within it."""
    yield _tab
    _tab.leave()


@pytest.fixture
def visitor(_tab_of_module: Visitor, server: Server) -> Iterator[Visitor]:
    """A visitor at no address of this test; whatever the test does, nothing may go wrong."""
    before = len(server.tracebacks)
    _tab_of_module.begin()
    yield _tab_of_module
    mishaps = server.tracebacks[before:]
    assert not mishaps, mishaps[0]
    _tab_of_module.no_mishap()


Visit = Callable[..., Visitor]


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    """Makes further visitors with a browser of their own: a friend, a wide screen, the dark."""
    visitors: list[Visitor] = []

    def arrive(url: str = server.url, **how: object) -> Visitor:
        visitors.append(Visitor(browser, url, **how))  # type: ignore[arg-type]
        return visitors[-1]

    yield arrive
    for visitor in visitors:
        visitor.no_mishap()
        visitor.close()
