"""Everybody: what axe finds, what the keys reach, what a figure says, how large it is.

Each page is visited once for all of it, also as it is presented: `docs/accessibility.md`.
"""

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser import page_views
from tests.browser.axe import findings
from tests.browser.conftest import Visit
from tests.browser.figure_room import WITH_FIGURE, address_of, lacking, too_small
from tests.browser.map_places import Drawn
from tests.browser.type_sizes import PAGES, note_canvas_type, written_on
from tests.browser.visiting import Visitor, box_of

WORDS_OF_FIGURES = Path(__file__).with_name("words_of_figures.js").read_text("utf-8")
BEGIN_AT = """where => {
  globalThis.stops = [];
  const found = [...document.querySelectorAll(where)];
  found.filter(each => each.checkVisibility() && each.tabIndex >= 0).at(-1).focus();
}"""
TOP, BAR = ".explorer-skip", "[data-testid=stSidebar] *, .st-key-bar *"
"""What is the same on all pages is gone through on one."""
STOP = Path(__file__).with_name("tab_stop.js").read_text("utf-8")
MOST_STOPS = 250
LEAST_SAID = 15
"""Letters of a title and a number."""
PROJECTOR, AT_200_PERCENT = (1280, 720), (640, 360)
SIZES = (1440, 900), (1920, 1080), (390, 844), AT_200_PERCENT, PROJECTOR
"""The first lies between two others. The next page begins in the last."""
READABLE = 18
"""Pixels of a text that the last row can read."""
IN_EVERY_WAY = ("attention", "checkpoints", "training")
"""Views of ours, tables and forms, in both themes and all sizes; with `--thorough` all pages."""


def in_themes(visitor: Visitor, *themes: str) -> list[str]:
    """What axe finds in the page that is shown."""
    found = []
    for theme in themes:
        visitor.themed(theme)
        found += [f"{theme}: {each}" for each in findings(visitor.page)]
    return found


def not_reached(visitor: Visitor, after: str) -> list[str]:
    """What is wrong on the way of the Tab key from the last stop of a part out of the page."""
    page = visitor.page
    page.evaluate(BEGIN_AT, after)
    stops = []
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if (stop := page.evaluate(STOP)) is None:
            break
        stops.append(stop)
        if stop[2]:  # round, and not out of the page
            break
    else:
        return [f"after {MOST_STOPS} stops: {stops[-3:]}"]
    takes_keys = page.locator("#stMain .view canvas[tabindex='0']:visible").count()
    met = sum(name.startswith("CANVAS") for name, _, again in stops if not again)
    faults = [f"no focus is seen: {name}" for name, is_seen, _ in stops if not is_seen]
    faults += [f"reached again: {name}" for name, _, again in stops if again]
    return faults if met == takes_keys else [*faults, f"{met} of {takes_keys} views reached"]


def test_the_keys_lead_to_the_figure_and_it_says_the_head_that_is_picked(visitor: Visitor) -> None:
    """Its title and its largest weights; menus and dialogs over it are for everybody, too."""
    page = visitor.open("/attention?model=translation")
    visitor.drawn("overview")
    text = visitor.widget("attention_head").locator(".described")
    expect(text).to_have_text(re.compile(r"Layer 0, head 0\. The largest: .+: 1\.00; "))
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="Skip to the figure")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(visitor.widget("overview").locator("canvas").first).to_be_focused()
    page.keyboard.press("ArrowRight")
    visitor.asks(head="1")
    expect(text).to_have_text(re.compile(r"Layer 0, head 1\. The largest: "))
    canvas = visitor.widget("attention_head").locator("canvas").first
    assert canvas.get_attribute("aria-describedby") == text.get_attribute("id")
    share, session = visitor.widget("share"), visitor.widget("kept_session")
    for opens in (share, session):
        visitor.until_run(opens.get_by_role("button").click)
        for popover in page.get_by_test_id("stPopoverBody").all():  # it opens where there is room
            expect(popover).to_be_in_viewport(ratio=1)
        assert in_themes(visitor, "dark", "light") == []
        page.keyboard.press("Escape")


def presented(visitor: Visitor, has_figure: bool) -> list[object]:
    """What somebody in the last row cannot read on this page, or what its figures lack there."""
    visitor.page.keyboard.press("f")
    visitor.page.wait_for_function("() => document.fullscreenElement")
    visitor.presents()
    faults = list[object]()
    if has_figure:
        faults += too_small(visitor, presents=True)
    else:
        visitor.settled()
    written = written_on(visitor.page)
    assert written
    return faults + [each for each in written if each.pixels < READABLE]


@pytest.mark.timeout(1_000)
def test_pages_are_for_all(visit: Visit, request: pytest.FixtureRequest) -> None:
    """Presented, and in each size of window; axe, what a figure says, and the Tab key.

    What is chosen by default is not in the address.
    """
    visitor, faults = visit(width=PROJECTOR[0], height=PROJECTOR[1]), dict[str, list[object]]()
    note_canvas_type(visitor.context)
    thorough = bool(request.config.getoption("--thorough"))
    for at, name in enumerate(PAGES):
        visitor.open(address := address_of(name))
        visitor.has_everything()
        in_link = dict(parse_qsl(urlsplit(address).query)).keys()
        chosen = visitor.query().keys() - in_link - {"run"}  # the newest of one's own, if any
        found: list[object] = [f"in the address: {each}" for each in chosen]
        found += presented(visitor, name in WITH_FIGURE)
        in_every_way = thorough or name in IN_EVERY_WAY
        for size in SIZES if in_every_way else SIZES[1:]:
            visitor.sized(*size)
            visitor.presents(False)
            visitor.fits(f"{name} at {size}")
            if name in WITH_FIGURE and size != AT_200_PERCENT:
                found += [f"{size}: {each}" for each in lacking(visitor)]
        if in_every_way:
            found += in_themes(visitor, "dark", "light")
        else:
            found += findings(visitor.page)
        figures = visitor.page.evaluate(WORDS_OF_FIGURES)
        found += [f"says nothing: {it}" for it, words in figures if len(words) < LEAST_SAID]
        found += not_reached(visitor, BAR if at else TOP)
        faults[name] = found
    assert {name: found for name, found in faults.items() if found} == {}


@pytest.mark.thorough
@pytest.mark.parametrize("page", page_views.pages())
def test_axe_finds_nothing_serious_in_any_view(visitor: Visitor, page: str) -> None:
    found = []
    for view, asks in page_views.every().items():
        if view[0] == page:
            visitor.open(f"/{page}?{asks.removeprefix('&')}")
            visitor.has_everything()
            found += [f"{view}, {each}" for each in in_themes(visitor, "dark", "light")]
    assert found == []


def test_a_phone_shows_start_attention_map_and_lessons(visit: Visit) -> None:
    """At 390 pixels, by touch: a tap pins a cell, without a word of Esc, another picks a head."""
    visitor = visit(width=390, height=844, touch=True)
    step = "/?lesson=attention_by_hand&lesson_step=1"
    for address in ("/lessons", step, "/attention?model=translation"):
        visitor.open(address)
        visitor.has_everything()
        visitor.fits(address)
    canvas, at = visitor.cell("overview", 0, 1)
    canvas.tap(position=at)
    visitor.asks(head="1")
    canvas, at = visitor.cell("attention_head", 0, 0)
    canvas.tap(position=at)
    expect(visitor.widget("attention_head").locator(".where")).to_have_text("  pinned")
    visitor.open("/")
    visitor.fits("/")
    visitor.open("/?model=translation")
    visitor.drawn("pass_map")
    stage = box_of(visitor.widget("pass_map").locator(".stage"))
    assert min(stage["width"], stage["height"]) > 240
    drawn = Drawn(visitor)
    (x, y), stream = drawn.token(0, 7), drawn.node(0, 0, 3)
    for (left, top), token in (((x - 17, y + 24), "white"), (stream, "does")):  # slanted; a column
        drawn.canvas.tap(position={"x": left, "y": top})
        expect(drawn.sentence).to_contain_text(f"Where {token} goes")
