"""Texts that are typed: harmful, strange, long; a published model in the dark; and their edges."""

import re

from playwright.sync_api import Locator, expect

from tests.browser.visiting import Visitor, box_of

HARMFUL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> "
    "![x](https://example.org/x.png) [link](javascript:alert(3)) $x$ :material/home:"
)
TEXTS = (
    "",
    "a\x07b\x1b[31mc\u202ed\ufeffe\x7f",
    "to be or not to be, " * 5_000,
    "I 💛 👩‍👩‍👧 שלום",
    HARMFUL,
)
BACKGROUND = "app => getComputedStyle(app).backgroundColor"


def inside(outer: Locator, inner: Locator) -> bool:
    """Whether one is drawn within the other, but for a pixel of rounding."""
    (right, low), (edge, floor) = (
        (box["x"] + box["width"], box["y"] + box["height"]) for box in map(box_of, (inner, outer))
    )
    return right <= edge + 1 and low <= floor + 1


def brightness(visitor: Visitor) -> int:
    shade = visitor.page.get_by_test_id("stApp").evaluate(BACKGROUND)
    return sum(map(int, re.findall(r"\d+", shade)[:3]))


def test_any_text_can_be_typed_and_a_checkpoint_is_drawn_within_its_edges(visitor: Visitor) -> None:
    visitor.open("/?model=shakespeare")
    assert brightness(visitor) > 600
    for text in TEXTS:
        visitor.until_run(lambda text=text: visitor.type(text))  # type: ignore[misc]
        visitor.no_traceback()
    visitor.follow("Models")
    for name in ("Weights", "Norms", "Singular values", "Heads", "Diagnostics"):
        visitor.turn_to(name)
        visitor.asks(show=name)
        visitor.rest()
        visitor.fits(f"Models, {name}")


def test_pages_show_a_published_model_in_the_dark(visitor: Visitor) -> None:
    page = visitor.open("/?model=t5")
    visitor.themed("dark")
    assert brightness(visitor) < 200
    for title in ("Tokens", "Models"):
        visitor.follow(title)
        expect(page.get_by_role("combobox", name="Model")).to_have_value("t5")
        visitor.no_traceback()
        expect(page.get_by_text("cannot be opened", exact=False).nth(1)).to_have_count(0)


def test_many_tokens_stay_within_their_view(visitor: Visitor) -> None:
    visitor.open("/attention?model=shakespeare&view=Tokens&text=" + "to+be+or+not+" * 12)
    visitor.drawn("attention_tokens")
    view = visitor.widget("attention_tokens")
    last = view.locator(".chip").last
    last.scroll_into_view_if_needed()
    last.hover()
    expect(view.locator(".sentence")).to_contain_text("is token")
    assert inside(view, last)
    visitor.open("/head_steps?model=long&text=" + "abc+" * 400)
    visitor.drawn("stages")
    visitor.away()
    view = visitor.widget("stages")
    expect(view.locator(".about")).to_contain_text("32 of 1,6")
    assert [panel for panel in view.locator(".panel").all() if not inside(view, panel)] == []
