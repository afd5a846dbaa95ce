"""An address is a view: on a server nobody has visited, for a friend, and with nonsense in it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import Browser, expect

from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import ROOT, Server, wait_until

NAMES = sorted(path.stem for path in ROOT.glob("pages/*/*.py") if path.stem != "__init__")
NONSENSE = [
    "/attention?head=99&layer=-3&part=sideways&model=..%2F..%2Fetc%2Fpasswd",
    "/masks?head=x&layer=1e9&text=%00%FF%FE",
    "/?text=%3Cscript%3Ealert(1)%3C%2Fscript%3E&model=&part=&layer=&head=",
    "/tokens?text=&text=two&unknown=1",
    "/train?task=nothing&run=..%2F..&model=nothing",
    "/checkpoints?open=..%2F..&run=%F0%9F%90%88",
    "/checkpoints?show=Weights&tensor=%3Cscript%3Ealert(1)%3C%2Fscript%3E&cell=x",
    "/edits?model=gpt2&text=5+17+3&edits=1.2~h.d.0.1.z~%3Cimg+src=x+onerror=alert(1)%3E",
    "/walk?model=shakespeare&stage=%3Cscript%3Ealert(1)%3C%2Fscript%3E&decoder_token=999",
]


def test_the_first_visitor_of_a_server_may_come_by_a_link(
    browser: Browser, fresh_server: Server
) -> None:
    visitor = Visitor(browser, fresh_server.url)
    try:
        page = visitor.open("/attention?model=shakespeare&layer=1&head=2")
        assert urlsplit(page.url).path == "/attention"
        expect(page.get_by_text("Layer 1, head 2", exact=True)).to_be_visible()
        visitor.no_mishap()
    finally:
        visitor.close()


def test_every_address_opens_its_own_page(visitor: Visitor) -> None:
    for name in NAMES:
        address = "/" if name == "start" else f"/{name}"
        page = visitor.open(address)
        visitor.no_traceback()
        current = page.get_by_test_id("stSidebarNav").locator("[aria-current=page]")
        expect(current).to_have_attribute("href", f"{visitor.url}{address}")


def test_nonsense_in_an_address_does_no_harm(visitor: Visitor) -> None:
    for address in NONSENSE:
        visitor.open(address)
        visitor.no_mishap()
    page = visitor.open("/attention?model=nobody")
    expect(page.get_by_text("There is no model “nobody” here")).to_be_visible()
    visitor.follow("Checkpoints")
    visitor.no_traceback()


def test_a_link_to_a_look_at_attention_gives_the_same_view(visitor: Visitor, visit: Visit) -> None:
    """The sentence, hidden keys, a held cell; lines of two heads; a token."""
    visitor.open("/attention?model=shakespeare&layer=0&head=0&text=To+be")
    visitor.type("To be, or not to be")
    visitor.asks(text="To be, or not to be")
    visitor.rest()
    plain = visitor.picture("attention_head")
    visitor.widget("adjust").get_by_role("button").first.click()
    visitor.widget("hide_first").locator("label").first.click()
    visitor.asks(hide_first="true")
    visitor.changed("attention_head", plain)
    visitor.page.keyboard.press("Escape")
    visitor.click("attention_head", 3, 1)
    visitor.asks(held="q3k1")
    visitor.rest()
    visitor.away()
    seen = visitor.picture("attention_head")
    visitor.page.reload()
    visitor.rest()
    visitor.shows("attention_head", seen)

    friend = visit()
    page = friend.open(visitor.page.url.removeprefix(visitor.url))
    friend.shows("attention_head", seen)
    expect(page.get_by_label("Your sentence", exact=True)).to_have_value("To be, or not to be")
    expect(friend.widget("attention_head").locator(".place")).to_have_text("query 3, key 1")

    visitor.turn_to("Lines")
    chips = visitor.widget("attention_lines").get_by_role("button")
    chips.nth(2).click()
    wait_until(lambda: ".2" in visitor.query().get("drawn", ""), "two heads in the address")
    friend.open(visitor.page.url.removeprefix(visitor.url))
    friend.drawn("attention_lines")
    drawn = friend.widget("attention_lines").get_by_role("button").all()
    assert [each.get_attribute("aria-pressed") for each in drawn].count("true") == 2


def test_a_link_to_an_edited_pass_gives_the_same_view(visitor: Visitor, visit: Visit) -> None:
    page = visitor.open(
        "/edits?model=shakespeare&text=To+be,+or+not&layer=0&head=0&change=Mask&mask_how=Hide+a+key"
    )
    visitor.press("Hide it from everybody")
    made = visitor.widget("edits_made")
    expect(made.get_by_text("nobody looks at")).to_be_visible()
    visitor.away()
    seen = visitor.picture("map_after")
    friend = visit()
    friend.open(page.url.removeprefix(visitor.url))
    friend.shows("map_after", seen)
    friend.press("Remove")
    expect(friend.page.get_by_text("Nothing is changed yet.")).to_be_visible()
    assert "edits" not in friend.query()

    friend.open("/checkpoints?model=shakespeare&show=Weights&tensor=mlp.down_proj.weight&layer=1")
    expect(friend.page.get_by_text(re.compile(r"decoder\.blocks\.1\.mlp\.down_proj"))).to_be_visible()
