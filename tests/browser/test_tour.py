"""A tour of every page, with text that would do harm if a browser ran it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import FloatRect, Locator, expect

from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor

HARMFUL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "![x](https://example.org/x.png) [link](javascript:alert(3)) $x$ :material/home:",
    "a\x07b\x1b[31mc\u202ed\ufeffe\x7f",
)
TEXTS = ("", "   ", "to be or not to be, " * 5_000, "I 💛 the 👩‍👩‍👧 cat 🐈‍⬛", "שלום עולם مرحبا")
BACKGROUND = "app => getComputedStyle(app).backgroundColor"


def box_of(drawn: Locator) -> FloatRect:
    box = drawn.bounding_box()
    assert box is not None
    return box


def inside(outer: Locator, inner: Locator) -> bool:
    """Whether one is drawn within the other, but for a pixel of rounding."""
    around, box = box_of(outer), box_of(inner)
    return (
        box["x"] + box["width"] <= around["x"] + around["width"] + 1
        and box["y"] + box["height"] <= around["y"] + around["height"] + 1
    )


def fits(visitor: Visitor, what: str) -> None:
    """Nothing of the page runs over its edge."""
    main = visitor.page.get_by_test_id("stMain")
    wide, room = main.evaluate("main => [main.scrollWidth, main.clientWidth]")
    assert wide <= room, f"{what} runs over the edge"


@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 1920)], ids=["light", "dark"])
def test_every_page_is_drawn_within_its_edges_and_asks_no_other_host(
    visit: Visit, dark: bool, width: int
) -> None:
    visitor = visit(dark=dark, width=width)
    page = visitor.open("/?model=shakespeare")
    shade = re.findall(r"\d+", page.get_by_test_id("stApp").evaluate(BACKGROUND))[:3]
    assert sum(map(int, shade)) < 200 if dark else sum(map(int, shade)) > 600
    visitor.type(HARMFUL[dark])
    visitor.rest()
    links = page.get_by_test_id("stSidebarNav").get_by_role("link")
    every = [title.strip() for title in links.all_inner_texts()]
    assert {"At a glance", "Attention", "The whole pass", "Museum", "Checkpoints"} <= {*every}
    for title in every:
        visitor.follow(title)
        visitor.no_traceback()
        fits(visitor, title)
    for name in ("Weights", "Norms", "Spectra", "Heads", "Doctor"):
        visitor.turn_to(name)
        visitor.asks(show=name)
        visitor.rest()
        fits(visitor, f"Checkpoints, {name}")
    assert visitor.notes.hosts == {urlsplit(visitor.url).netloc}


def test_many_tokens_stay_within_their_view(visitor: Visitor) -> None:
    visitor.open("/attention?model=shakespeare&view=Tokens&text=" + "to+be+or+not+" * 12)
    visitor.drawn("attention_tokens")
    view = visitor.widget("attention_tokens")
    last = view.locator(".chip").last
    last.scroll_into_view_if_needed()
    last.hover()
    expect(view.locator(".sentence")).to_contain_text("is token")
    assert inside(view, last)
    visitor.open("/stages?model=long&text=" + "abc+" * 400)
    visitor.drawn("stages")
    view = visitor.widget("stages")
    expect(view.locator(".about")).to_contain_text("Shown are 32 of 1,6")
    outside = [panel for panel in view.locator(".panel").all() if not inside(view, panel)]
    assert outside == []


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
