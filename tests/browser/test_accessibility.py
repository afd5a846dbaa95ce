"""Everybody: what axe finds, what the keyboard reaches, what a figure says, what a phone shows.

It takes minutes, since it goes through every view of every page: `docs/accessibility.md`.
"""

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.browser.axe import findings
from tests.browser.conftest import Visit
from tests.browser.truth import views
from tests.browser.visiting import DRAWN_ANEW, Visitor
from tests.served import wait_until

THEME = "getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme"
SAID = """() => {
  const every = root => [...root.querySelectorAll("*")].flatMap(each =>
    [each, ...(each.shadowRoot ? every(each.shadowRoot) : [])]);
  const charts = "[data-testid=stVegaLiteChart], .stPlotlyChart";
  const isFigure = each => each.matches(`.view canvas, ${charts}`) &&
    !each.parentElement.closest(`${charts}, [data-testid=stDataFrame]`);
  return every(document).filter(isFigure).map(each => {
    const by = each.getAttribute("aria-describedby");
    const alone = each.closest("[aria-label]") ?? each.querySelector("[role=img][aria-label]");
    const text = by ? each.getRootNode().getElementById(by).textContent : "";
    return [each.outerHTML.slice(0, 200), text || alone?.getAttribute("aria-label") || ""];
  });
}"""
"""Every figure of a page, and what it says of itself."""
STOP = """async () => {
  const deepest = () => {
    let at = document.activeElement;
    while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
    return at;
  };
  const drawn = () => new Promise(come => requestAnimationFrame(() => requestAnimationFrame(come)));
  const up = each => each.parentElement ?? each.getRootNode().host;
  const at = deepest();
  if (!at || at === document.body) return null;
  globalThis.stops ??= [];
  const table = at.closest("[data-testid=data-grid-canvas]");
  if (table) {  // draws its focus itself, cell by cell; its cells within are for screen readers
    if (globalThis.stops.at(-1) !== table) globalThis.stops.push(table);
    return ["a table", true, false];
  }
  const looks = () => {
    const found = [];
    for (let each = at, i = 0; each && i < 6; each = up(each), i++) {
      for (const part of [null, "::before", "::after"]) {
        const {outlineStyle, outlineColor, boxShadow, borderColor, backgroundColor, clipPath} =
          getComputedStyle(each, part);
        found.push(outlineStyle, outlineColor, boxShadow, borderColor, backgroundColor, clipPath);
      }
    }
    return found.join();
  };
  await drawn();
  const focused = looks();
  at.blur();
  await drawn();
  const left = looks();
  at.focus();
  const again = globalThis.stops.includes(at);
  globalThis.stops.push(at);
  const name = at.getAttribute("aria-label") || at.textContent;
  return [`${at.tagName} ${name.trim().slice(0, 40)}`, focused !== left, again];
}"""
"""Where the Tab key has led: what it is, whether one sees that, and whether it was there before."""
STILL = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("*, *::before, *::after { transition: none !important; }");
  document.adoptedStyleSheets.push(sheet);
}"""
MOST_STOPS = 250
ROWS, COLUMNS = 10, 10
"""Of the sentence that is shown first."""
WITHIN = "main => main.scrollWidth <= main.clientWidth"
LEAST_SAID = 15
"""Letters of a title and a number."""


def open_in(visitor: Visitor, view: views.View, asks: str) -> None:
    """Go to a view of a page, and wait until all of it is drawn."""
    visitor.open(f"/{view[0]}?{asks.removeprefix('&')}")
    visitor.has_everything()


def turn(visitor: Visitor, theme: str) -> None:
    """The system asks for this theme; the page follows."""
    visitor.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    visitor.page.wait_for_function(f"() => {THEME} === '{theme}'")
    visitor.page.evaluate(DRAWN_ANEW)


def found_in(visitor: Visitor, view: views.View, asks: str, *themes: str) -> list[str]:
    """What axe finds in a view in these themes."""
    visitor.page.emulate_media(color_scheme="dark" if themes[0] == "dark" else "light")
    open_in(visitor, view, asks)
    found = []
    for theme in themes:
        turn(visitor, theme)
        found += [f"{view}, {theme}: {each}" for each in findings(visitor.page)]
    return found


@pytest.mark.parametrize("page", views.pages())
def test_axe_finds_nothing_serious(visitor: Visitor, page: str) -> None:
    view, asks = next(each for each in views.every().items() if each[0][0] == page)
    assert found_in(visitor, view, asks, "light", "dark") == []
    figures = visitor.page.evaluate(SAID)
    assert [html for html, said in figures if len(said) < LEAST_SAID] == []


def test_axe_finds_nothing_serious_in_what_opens_over_the_page(visitor: Visitor) -> None:
    """Menus and dialogs stand beside the part of the page that has the theme."""
    visitor.open("/attention?model=translation")
    opens = visitor.widget("share").get_by_role("button"), visitor.widget("kept_session")
    for opened in (opens[0], opens[1].get_by_role("button")):
        visitor.until_run(opened.click)
        for theme in ("dark", "light"):
            turn(visitor, theme)
            assert [theme, *findings(visitor.page)] == [theme]
        visitor.page.keyboard.press("Escape")


@pytest.mark.thorough
@pytest.mark.parametrize("page", views.pages())
def test_axe_finds_nothing_serious_in_any_view(visitor: Visitor, page: str) -> None:
    for view, asks in views.every().items():
        if view[0] == page:
            assert found_in(visitor, view, asks, "dark", "light") == []


@pytest.mark.parametrize("page", views.pages())
def test_the_tab_key_reaches_all_is_seen_and_goes_on(visitor: Visitor, page: str) -> None:
    """From the first stop to the last and out of the page; every view that takes keys is met."""
    visitor.open(f"/{page}")
    visitor.has_everything()
    visitor.page.evaluate(STILL)
    stops = []
    for _ in range(MOST_STOPS):
        visitor.page.keyboard.press("Tab")
        if (stop := visitor.page.evaluate(STOP)) is None:
            break
        stops.append(stop)
    else:
        raise AssertionError(f"after {MOST_STOPS} stops: {stops[-3:]}")
    assert [name for name, is_seen, _ in stops if not is_seen] == []
    assert [name for name, _, was_there in stops if was_there] == []
    takes_keys = visitor.page.locator("#stMain .view canvas[tabindex='0']:visible")
    met = [name for name, *_ in stops if name.startswith("CANVAS")]
    assert len(met) == takes_keys.count()


def test_the_first_stop_skips_to_the_figure(visitor: Visitor) -> None:
    page = visitor.open("/attention?model=translation")
    visitor.drawn("overview")
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="Skip to the figure")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(visitor.widget("overview").locator("canvas").first).to_be_focused()
    page.keyboard.press("ArrowLeft")
    visitor.asks(head="0")


def test_a_figure_says_the_head_that_is_picked(visitor: Visitor) -> None:
    """Its title and its largest weights, as the view's own sentence has them."""
    page = visitor.open("/attention?model=translation")
    text = visitor.widget("attention_head").locator(".described")
    expect(text).to_have_text(re.compile(r"Layer 0, head 1\. The largest: .+: 1\.00; "))
    visitor.pick("overview", layer=0, head=0)
    expect(text).to_have_text(re.compile(r"Layer 0, head 0\. The largest: "))
    first = str(text.text_content()).partition("The largest: ")[2].partition(";")[0]
    canvas = visitor.widget("attention_head").locator("canvas").first
    assert canvas.get_attribute("aria-describedby") == text.get_attribute("id")
    canvas.focus()
    sentence = visitor.widget("attention_head").locator(".sentence")
    said = [""]
    for _ in range(COLUMNS):  # every cell by the keys, there and back
        for key in ["ArrowDown"] * ROWS:
            page.keyboard.press(key)
            said.append(str(sentence.text_content()).partition("  pinned")[0])
        for key in ["ArrowUp"] * ROWS:
            page.keyboard.press(key)
        page.keyboard.press("ArrowRight")
    assert first in said


def test_at_200_percent_no_page_scrolls_sideways(visit: Visit) -> None:
    """1280 pixels at 200 % are 640."""
    visitor = visit(width=640, height=450)
    for page in views.pages():
        visitor.open(f"/{page}")
        visitor.has_everything()
        fits(visitor, page)


def fits(visitor: Visitor, page: str) -> None:
    """Nothing runs over the edge but within its own frame."""
    main = visitor.page.get_by_test_id("stMain")
    wait_until(partial(main.evaluate, WITHIN), f"{page} within the edge")


def test_a_phone_shows_start_attention_map_and_lessons(visit: Visit) -> None:
    """At 390 pixels, by touch: a tap pins a cell, and another picks a head."""
    visitor = visit(width=390, height=844, touch=True)
    for address in (
        "",
        "lessons",
        "?lesson=attention_by_hand&lesson_step=1",
        "attention?model=translation",
    ):
        visitor.open(f"/{address}")
        visitor.has_everything()
        fits(visitor, address)
    canvas, at = visitor.cell("overview", 0, 0)
    canvas.tap(position=at)
    visitor.asks(head="0")
    canvas, at = visitor.cell("attention_head", 0, 0)
    canvas.tap(position=at)
    expect(visitor.widget("attention_head").locator(".where")).to_contain_text("pinned")
    visitor.open("/")
    visitor.drawn("pass_map")
    stage = visitor.widget("pass_map").locator(".stage").bounding_box()
    assert stage is not None
    assert min(stage["width"], stage["height"]) > 240
