"""The frame of every page: the bar, the pages by section, the way back, the tools, the links."""

import re
from contextlib import suppress
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Locator, expect
from playwright.sync_api import TimeoutError as NotInTime

from explorer.app.address_parameters import VERSION
from explorer.system.long_texts import name_of
from tests.browser.visiting import Visitor, box_of
from tests.served import wait_until

SHAKESPEARE = "Shakespeare, subword by subword"
BAR = ("text", "model", "part", "layer", "head")
HEAD = {"model": "long-gpt2", "layer": "3", "head": "7"}
CHOSEN = {**HEAD, "text": "to be"}
LONG = "to be or not to be, " * 150
REACHED = """keys => keys.filter(key => {
  const place = `.st-key-${CSS.escape(key)}`, can = "input, button, summary, a, [tabindex]";
  return [...document.querySelectorAll(`${place} :is(${can})`)].some(control => {
    control.focus();
    return document.activeElement === control;
  });
})"""
PAPER, NIGHT = "rgb(253, 253, 252)", "rgb(17, 19, 23)"


def is_shown(visitor: Visitor, chosen: dict[str, str], **labels: str) -> None:
    """Wait until the bar and the address show this; a label that differs from it is named."""
    visitor.asks(**chosen)
    for key, value in {**chosen, **labels}.items():
        expect(visitor.widget(key).locator("input")).to_have_value(value)


def bottom(element: Locator) -> float:
    box = box_of(element)
    return box["y"] + box["height"]


def is_one_row(visitor: Visitor) -> bool:
    """Whether all of the bar is there, in one row at the top, with room for a sentence."""
    boxes = [box for key in BAR if (box := visitor.widget(key).bounding_box())]
    ends = {round(box["y"] + box["height"]) for box in boxes}
    return len(boxes) == len(BAR) and ends <= {*range(100)} and boxes[0]["width"] >= 150


def test_a_small_window_has_the_bar_and_all_places(visitor: Visitor) -> None:
    visitor.sized(1280, 720)
    for address in ("/?model=translation", "/attention?model=long-gpt2", "/query_key?model=bert"):
        visitor.open(address)
        wait_until(lambda: is_one_row(visitor), f"one row on {address}")
    visitor.settled()
    sidebar = visitor.page.get_by_test_id("stSidebarContent")
    assert visitor.links().count() <= 15
    assert sidebar.evaluate("bar => bar.scrollHeight <= bar.clientHeight")
    assert bottom(visitor.widget("tools")) < 720
    assert bottom(visitor.links().last) < bottom(visitor.widget("theme"))
    assert bottom(visitor.widget("pass_picture")) <= bottom(visitor.links().first)
    visitor.sized(390, 844)
    expect(visitor.widget("model")).to_be_hidden()
    visitor.widget("bar_more").locator("label").click()
    expect(visitor.widget("model")).to_be_visible()
    visitor.page.get_by_test_id("stExpandSidebarButton").click()
    visitor.links().filter(has_text="Tokens").click()
    expect(visitor.links().first).not_to_be_in_viewport()


def test_what_is_chosen_is_kept_through_pages_a_reload_and_the_way_back(visitor: Visitor) -> None:
    """Also a text too long for a link, an open panel, and the theme."""
    page = visitor.open(f"/attention?{'&'.join(f'{k}={v}' for k, v in CHOSEN.items())}")
    visitor.themed("dark")
    is_shown(visitor, CHOSEN)
    app, code = page.get_by_test_id("stApp"), visitor.widget("code").locator("summary")
    page.evaluate("() => { window.opened = true; }")
    for theme, paper in (("Light", PAPER), ("System", NIGHT), ("Light", PAPER)):
        page.get_by_role("radio", name=f"{theme} theme").check()
        expect(app).to_have_css("background-color", paper)
    assert page.evaluate("window.opened"), "the page was loaded anew"
    code.click()
    visitor.says("Run this in the folder of the README:")
    visitor.asks(code="true")
    code.click()
    wait_until(lambda: "code" not in visitor.query(), "an address without the panel")
    visitor.fill("Your sentence", LONG)
    visitor.asks(text_file=name_of(LONG), **HEAD)
    assert "text" not in visitor.query()

    visitor.load()
    expect(page.get_by_label("Your sentence", exact=True)).to_have_value(LONG)
    is_shown(visitor, HEAD)
    expect(page.get_by_role("radio", name="Light theme")).to_be_checked()
    expect(app).to_have_css("background-color", PAPER)
    page.get_by_role("radio", name="System theme").check()
    expect(app).to_have_css("background-color", NIGHT)
    page.emulate_media(color_scheme="light")
    expect(app).to_have_css("background-color", PAPER)

    visitor.follow("Tokens")
    visitor.asks(text_file=name_of(LONG))
    visitor.fill("Your sentence", "to be")
    visitor.asks(**CHOSEN)
    assert "text_file" not in visitor.query()
    for title, keys in {"Tokens": ("text", "model"), "Training": ()}.items():
        visitor.follow(title)
        assert [key for key in BAR if visitor.widget(key).is_visible()] == list(keys)
        visitor.asks(**CHOSEN)
    visitor.follow("All heads")
    is_shown(visitor, CHOSEN)
    for title in ("Training", "Tokens"):
        page.go_back()
        visitor.titled(title)
        visitor.rest()
        visitor.asks(**CHOSEN)


def test_the_way_back_leads_to_what_was_chosen_on_the_page(visitor: Visitor) -> None:
    page = visitor.open("/query_key?layer=1&model=shakespeare&text=To+be&pair_view=Why")
    visitor.choose("Query", "1 · To")
    visitor.asks(query="1 · To")
    before, follow = page.url, "[class*=st-key-follow_] button"
    for there in ("a:has-text('Masks')", follow, "a:has-text('Answer without')"):
        visitor.until_run(page.locator(there).first.click)
        page.go_back()
        wait_until(lambda: page.url == before, lambda: f"a step back to {before} from {page.url}")
        visitor.titled("Query and key")
        visitor.rest()
        expect(visitor.widget("query").get_by_role("combobox")).to_have_value("1 · To")

    visitor.open("/attention?model=translation&head=0&text=the+cat")
    visitor.choose("Model", SHAKESPEARE)
    visitor.asks(model="shakespeare")
    page.go_back()
    chosen = {"model": "translation", "head": "0", "text": "the cat"}
    is_shown(visitor, chosen, model="English to French")
    visitor.rest()
    page.go_forward()
    is_shown(visitor, {"model": "shakespeare"}, model=SHAKESPEARE)


def test_another_page_opens_at_its_top(visitor: Visitor) -> None:
    main = visitor.open("/checkpoints").get_by_test_id("stMain")
    main.evaluate("main => main.scrollTo(0, 10_000)")
    assert main.evaluate("main => main.scrollTop") > 0
    main.get_by_test_id("stPageLink").last.get_by_role("link").click()
    visitor.titled("Attention maps")
    visitor.rest()
    assert main.evaluate("main => main.scrollTop") == 0


def test_a_link_for_a_class_hides_controls_from_eye_and_key(visitor: Visitor) -> None:
    """Those that were chosen, then all that there are; they are back at a click."""
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visitor.open("/attention?model=long-gpt2&layer=3&export=true&adjust=x")
    expect(page.get_by_role("button", name="Numbers, CSV")).to_be_visible()
    visitor.says("has no “x” here; showing it closed.")
    page.keyboard.press("Escape")
    visitor.open("/attention?model=long-gpt2&layer=3")
    field = visitor.hide("Bar: Head", "Page: View", "Navigation: Training")
    page.get_by_text("Fold the sidebar").click()
    expect(field).to_have_value(re.compile("sidebar=folded"))
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == field.input_value()
    shared = "model=long-gpt2&layer=3&hidden=head&hidden=view&hidden=Training&sidebar=folded"
    assert link == f"{visitor.url}/attention?{shared}&version={VERSION}"

    page.evaluate("localStorage.clear()")  # a browser that was never here, as a student's
    visitor.load(link.removeprefix(visitor.url))
    is_shown(visitor, {"layer": "3"})
    expect(visitor.widget("head")).to_have_count(0)
    expect(visitor.widget("view")).to_be_hidden()
    expect(visitor.links().first).not_to_be_in_viewport()
    assert page.get_by_role("radio", name="Lines", exact=True).count() == 0
    assert page.evaluate(REACHED, ["view"]) == []

    page.get_by_test_id("stExpandSidebarButton").click()
    expect(visitor.links().first).to_be_in_viewport()  # whatever opens next finds it as it was
    visitor.open("/attention?model=long-gpt2")
    field = visitor.hide()
    listed = page.get_by_role("combobox", name="Hide controls")
    every = page.get_by_text("Select all")

    def choose_all() -> bool:  # a list closes while what stands around it settles
        listed.press("ArrowDown")
        if every.is_visible():
            with suppress(NotInTime):  # the list has closed meanwhile
                every.click(timeout=5_000)
        return field.input_value().endswith(f"hidden=Compare&version={VERSION}")

    wait_until(choose_all, "a link that hides everything", 30)
    visitor.open(field.input_value().removeprefix(visitor.url))
    hidden = [value for key, value in parse_qsl(urlsplit(page.url).query) if key == "hidden"]
    assert {"text", "head", "code", "export", "Training"} < set(hidden)
    for key in hidden:
        expect(visitor.widget(key).filter(visible=True)).to_have_count(0)
    expect(visitor.links()).to_have_count(0)
    assert page.evaluate(REACHED, hidden) == []

    visitor.open("/attention?model=long-gpt2&hidden=head&hidden=view&hidden=layer")
    visitor.until_run(lambda: visitor.pick("overview", layer=4, head=5))
    visitor.asks(layer="4", head="5")
    page.get_by_role("button", name="Share").click()
    visitor.widget("show_all").get_by_role("button").click()
    is_shown(visitor, {"head": "5"})
    expect(visitor.widget("view")).to_be_visible()
    assert "hidden" not in visitor.query()
