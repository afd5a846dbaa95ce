"""An address is a view: on a server nobody has visited, and with nonsense in it."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import ROOT, Server

NAMES = sorted(path.stem for path in ROOT.glob("pages/*/*.py") if path.stem != "__init__")
ADDRESSES = ["/" if name == "start" else f"/{name}" for name in NAMES]
NONSENSE = [
    "/attention?head=99&layer=-3&part=sideways&model=..%2F..%2Fetc%2Fpasswd",
    "/masks?head=x&layer=1e9&text=%00%FF%FE",
    "/?text=%3Cscript%3Ealert(1)%3C%2Fscript%3E&model=&part=&layer=&head=",
    "/tokens?text=&text=two&unknown=1",
    "/train?task=nothing&run=..%2F..&model=nothing",
    "/checkpoints?open=..%2F..&run=%F0%9F%90%88",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_cold_link_opens_its_page(browser: Browser, fresh_server: Server, address: str) -> None:
    visitor = Visitor(browser, fresh_server.url)
    try:
        page = visitor.open(address)
        visitor.no_traceback()
        assert urlsplit(page.url).path == address
        current = page.get_by_test_id("stSidebarNav").locator("[aria-current=page]")
        expect(current).to_have_attribute("href", f"{fresh_server.url}{address}")
    finally:
        visitor.close()


@pytest.mark.parametrize("address", NONSENSE)
def test_nonsense_in_an_address_does_no_harm(visit: Visit, address: str) -> None:
    visitor = visit()
    visitor.open(address)
    visitor.no_traceback()
    assert visitor.notes.dialogs == []
    visitor.follow("Attention")
    visitor.no_traceback()


def test_an_unknown_model_is_said_in_a_sentence(visitor: Visitor) -> None:
    page = visitor.open("/attention?model=nobody")
    expect(page.get_by_text("There is no model “nobody” here")).to_be_visible()
