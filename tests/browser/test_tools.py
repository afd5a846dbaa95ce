"""The row of tools at the foot of the sidebar, which only a browser can show at work."""

import re
from contextlib import suppress
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import TimeoutError as NotInTime
from playwright.sync_api import expect

from explorer.app.address_table import VERSION
from explorer.catalog.long_texts import name_of
from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import wait_until

LONG = "to be or not to be, " * 150
REACHED = """() => [...document.querySelectorAll(".st-key-view input, .st-key-view button")]
  .filter(control => { control.focus(); return document.activeElement === control; })
  .map(control => control.outerHTML)"""
REACHED_OF = """keys => keys.filter(key => {
  const place = `.st-key-${CSS.escape(key)}`, can = "input, button, summary, a, [tabindex]";
  return [...document.querySelectorAll(`${place} :is(${can})`)].some(control => {
    control.focus();
    return document.activeElement === control;
  });
})"""
PAPER, NIGHT = "rgb(253, 253, 252)", "rgb(17, 19, 23)"


def test_the_theme_changes_at_one_click_and_stays_on_every_page(visit: Visit) -> None:
    visitor = visit(dark=True)
    page = visitor.open("/attention?layer=1")
    app = page.get_by_test_id("stApp")
    page.evaluate("() => { window.opened = true; }")
    for theme, paper in (("Light", PAPER), ("System", NIGHT), ("Light", PAPER)):
        page.get_by_role("radio", name=f"{theme} theme").check()
        expect(app).to_have_css("background-color", paper)
    visitor.asks(layer="1")
    assert page.evaluate("window.opened"), "the page was loaded anew"
    for address in ("/", "/heads"):
        visitor.open(address)
        expect(page.get_by_role("radio", name="Light theme")).to_be_checked()
        expect(app).to_have_css("background-color", PAPER)
    page.get_by_role("radio", name="System theme").check()
    expect(app).to_have_css("background-color", NIGHT)
    page.emulate_media(color_scheme="light")
    expect(app).to_have_css("background-color", PAPER)


def test_a_link_for_a_class_hides_controls_from_eye_and_key(visit: Visit) -> None:
    visitor = visit(width=1280, height=720)
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visitor.open("/attention?model=long-gpt2&layer=3")
    page.get_by_role("button", name="Share").click()
    for name in ("Bar: Head", "Page: View", "Navigation: Training"):
        page.get_by_role("combobox", name="Hide controls").fill(name)
        page.get_by_role("option", name=name, exact=True).click()
    page.get_by_text("Fold the sidebar").click()
    field = page.get_by_label("Link to this page")
    expect(field).to_have_value(re.compile("sidebar=folded"))
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == field.input_value()
    shared = "model=long-gpt2&layer=3&hidden=head&hidden=view&hidden=Training&sidebar=folded"
    assert link == f"{visitor.url}/attention?{shared}&version={VERSION}"

    page.goto("about:blank")
    visitor.open(link.removeprefix(visitor.url))
    visitor.asks(layer="3")
    expect(visitor.widget("layer").locator("input")).to_have_value("3")
    expect(visitor.widget("head")).to_have_count(0)
    expect(visitor.widget("view")).to_be_hidden()
    expect(visitor.links().first).not_to_be_in_viewport()
    assert page.get_by_role("radio", name="Lines", exact=True).count() == 0
    assert page.evaluate(REACHED) == []


@pytest.mark.parametrize("name", ["attention", "query_key"])
def test_every_option_of_the_class_builder_hides_what_it_names(visitor: Visitor, name: str) -> None:
    page = visitor.open(f"/{name}?model=long-gpt2")
    visitor.until_run(page.get_by_role("button", name="Share").click)
    listed, every = (
        page.get_by_role("combobox", name="Hide controls"),
        page.get_by_text("Select all"),
    )

    def choose_all() -> bool:  # a list closes while what stands around it settles
        listed.press("ArrowDown")
        if every.is_visible():
            with suppress(NotInTime):  # the list has closed meanwhile
                every.click(timeout=5_000)
        return field.input_value().endswith(f"hidden=Models&version={VERSION}")

    field = page.get_by_label("Link to this page")
    wait_until(choose_all, "a link that hides everything", 30)
    visitor.open(field.input_value().removeprefix(visitor.url))
    hidden = [value for key, value in parse_qsl(urlsplit(page.url).query) if key == "hidden"]
    assert {"text", "head", "code", "export", "Training"} < set(hidden)
    for key in hidden:
        expect(visitor.widget(key).filter(visible=True)).to_have_count(0)
    expect(visitor.links()).to_have_count(0)
    assert page.evaluate(REACHED_OF, hidden) == []


def test_hidden_controls_are_back_at_a_click(visitor: Visitor) -> None:
    page = visitor.open("/attention?model=long-gpt2&hidden=head&hidden=view&hidden=layer")
    visitor.until_run(lambda: visitor.pick("overview", layer=4, head=5))
    visitor.asks(layer="4", head="5")
    page.get_by_role("button", name="Share").click()
    visitor.widget("show_all").get_by_role("button").click()
    expect(visitor.widget("head").locator("input")).to_have_value("5")
    expect(visitor.widget("view")).to_be_visible()
    assert "hidden" not in page.url


def test_no_page_writes_what_is_chosen_by_default_into_the_address(visitor: Visitor) -> None:
    for address in ("/", "/attention", "/generation", "/museum", "/checkpoints"):
        page = visitor.open(address)
        assert urlsplit(page.url).query == ""


def test_a_panel_that_is_open_is_in_the_address_and_a_link_opens_it(visitor: Visitor) -> None:
    page = visitor.open("/attention?model=long-gpt2&export=true&adjust=x")
    expect(page.get_by_role("button", name="Numbers, CSV")).to_be_visible()
    visitor.says("has no “x” here; showing it closed.")
    page.keyboard.press("Escape")
    visitor.widget("code").locator("summary").click()
    visitor.says("Run this in the folder of the README:")
    visitor.asks(code="true")
    page.reload()
    visitor.rest()
    visitor.says("Run this in the folder of the README:")
    visitor.widget("code").locator("summary").click()
    wait_until(lambda: "code" not in page.url, "an address without the panel")


def test_a_text_too_long_for_a_link_is_there_after_a_reload_and_on_the_way_back(
    visitor: Visitor,
) -> None:
    page = visitor.open("/tokens?model=long-gpt2&text=to+be")
    field = page.get_by_label("Your sentence", exact=True)
    visitor.fill("Your sentence", LONG)
    visitor.asks(text_file=name_of(LONG))
    assert "text=" not in page.url
    page.reload()
    visitor.rest()
    expect(field).to_have_value(LONG)
    visitor.follow("Attention maps")
    visitor.asks(text_file=name_of(LONG))
    visitor.fill("Your sentence", "to be or")
    visitor.asks(text="to be or")
    assert "text_file" not in page.url
    page.reload()
    visitor.rest()
    expect(field).to_have_value("to be or")
