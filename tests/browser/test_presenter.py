"""Presenter mode in the running app: what it hides, how large it is, and what its keys do."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.visiting import DRAWN_ANEW, Visitor
from tests.served import wait_until

ENLARGED = "Number(document.documentElement.style.zoom || 1)"


def is_presenting(visitor: Visitor) -> bool:
    return "presenting" in (visitor.page.locator("html").get_attribute("class") or "")


def begin(visitor: Visitor, address: str) -> None:
    """Open it, and present."""
    visitor.open(address)
    ready = "() => Boolean(globalThis.explorerPresenter)"
    wait_until(lambda: visitor.page.evaluate(ready), "the code of the presenter")
    visitor.page.keyboard.press("f")
    wait_until(lambda: is_presenting(visitor), "presenter mode")


def test_a_key_presents_and_leaves_and_the_address_says_so(visitor: Visitor) -> None:
    begin(visitor, "/attention")
    sidebar = visitor.page.get_by_test_id("stSidebar")
    expect(sidebar).to_be_hidden()
    expect(visitor.widget("export")).to_be_hidden()
    expect(visitor.widget("code")).to_be_hidden()
    assert visitor.page.evaluate(ENLARGED) == 1.5
    assert visitor.query() == {"present": "true"}
    visitor.page.reload()
    visitor.rest()
    wait_until(lambda: is_presenting(visitor), "presenter mode again")
    visitor.page.keyboard.press("Escape")
    expect(sidebar).to_be_visible()
    assert not is_presenting(visitor)
    assert visitor.query() == {}


def test_it_stays_from_page_to_page_and_in_a_field_the_key_is_a_letter(visitor: Visitor) -> None:
    begin(visitor, "/attention")
    field = visitor.page.get_by_label("Your sentence", exact=True)
    visitor.until_run(lambda: visitor.type("the cat"))
    field.press("f")
    expect(field).to_have_value("the catf")
    assert is_presenting(visitor)
    assert visitor.query()["present"] == "true"
    field.blur()
    visitor.page.keyboard.press("Escape")
    assert not is_presenting(visitor)


def test_it_is_as_large_on_a_larger_screen(visit: Visit) -> None:
    wide = visit(width=1920, height=1080)
    begin(wide, "/attention")
    assert wide.page.evaluate(ENLARGED) == 2.25


def test_pictures_stay_sharp_and_the_pointer_meets_its_cell(visitor: Visitor) -> None:
    begin(visitor, "/attention?model=translation")
    canvas, at = visitor.cell("attention_head", 2, 1)
    box = canvas.bounding_box()
    assert box
    sizes: list[float] = canvas.evaluate("canvas => [canvas.width, canvas.height]")
    assert [round(size) for size in sizes] == [round(box["width"]), round(box["height"])]
    visitor.page.mouse.move(box["x"] + 1.5 * at["x"], box["y"] + 1.5 * at["y"])
    sentence = visitor.widget("attention_head").locator(".sentence").first
    expect(sentence).to_contain_text("noir")
    expect(sentence).to_contain_text("black")
    visitor.page.evaluate(DRAWN_ANEW)
