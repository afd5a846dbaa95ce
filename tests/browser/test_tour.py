"""A tour of every page, with text that would do harm if a browser ran it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor

HARMFUL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "![x](https://example.org/x.png) [link](javascript:alert(3)) $x$ :material/home:",
    "a\x07b\x1b[31mc\u202ed\ufeffe\x7f",
)
TEXTS = ("", "   ", "to be or not to be, " * 5_000, "I 💛 the 👩‍👩‍👧 cat 🐈‍⬛", "שלום עולם مرحبا")


def titles(visitor: Visitor) -> list[str]:
    links = visitor.page.get_by_test_id("stSidebarNav").get_by_role("link")
    return [title.strip() for title in links.all_inner_texts()]


def background(visitor: Visitor) -> int:
    """Red, green and blue of the page, added up."""
    shade: str = visitor.page.get_by_test_id("stApp").evaluate(
        "app => getComputedStyle(app).backgroundColor"
    )
    return sum(map(int, re.findall(r"\d+", shade)[:3]))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_is_drawn_and_asks_no_other_host(visit: Visit, dark: bool) -> None:
    visitor = visit(dark=dark)
    visitor.open("/?model=shakespeare")
    assert (background(visitor) < 200) == dark
    assert (background(visitor) > 600) != dark
    visitor.type(HARMFUL[dark])
    visitor.rest()
    every = titles(visitor)
    assert {"At a glance", "Attention", "The whole pass", "Museum", "Checkpoints"} <= {*every}
    for title in every:
        visitor.follow(title)
        visitor.no_traceback()
        wide, room = visitor.page.get_by_test_id("stMain").evaluate(
            "main => [main.scrollWidth, main.clientWidth]"
        )
        assert wide <= room, f"{title} runs over the edge"
    assert visitor.notes.hosts == {urlsplit(visitor.url).netloc}
    visitor.no_mishap()


def test_any_text_is_shown_or_refused(visitor: Visitor) -> None:
    visitor.open("/attention?model=shakespeare")
    for text in (*TEXTS, HARMFUL[2]):
        visitor.type(text)
        visitor.rest()
        visitor.no_traceback()
        visitor.follow("Tokens")
        visitor.no_traceback()
        visitor.follow("Attention")
        visitor.no_traceback()


def test_a_wide_screen_is_filled_and_not_run_over(visit: Visit) -> None:
    visitor = visit(width=1920)
    visitor.open("/checkpoints?model=translation&show=Ledger")
    for name in ("Weights", "Norms", "Spectra", "Heads", "Doctor"):
        visitor.turn_to(name)
        visitor.asks(show=name)
        wide, room = visitor.page.get_by_test_id("stMain").evaluate(
            "main => [main.scrollWidth, main.clientWidth]"
        )
        assert wide <= room, f"{name} runs over the edge"
    visitor.open("/attention?model=shakespeare&view=Tokens&text=" + "to+be+or+not+" * 12)
    visitor.drawn("attention_tokens")
    last = visitor.widget("attention_tokens").locator(".chip").last
    last.scroll_into_view_if_needed()
    last.hover()
    expect(visitor.widget("attention_tokens").locator(".sentence")).to_contain_text("is token")
    box, view = last.bounding_box(), visitor.widget("attention_tokens").bounding_box()
    assert box is not None
    assert view is not None
    assert box["x"] + box["width"] <= view["x"] + view["width"]
