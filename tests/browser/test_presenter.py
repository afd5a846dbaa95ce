"""Presenter mode in the running app: what it hides, how large it is, and what its keys do.

`PICTURES=folder` keeps a picture of each moment of the lecture.
"""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.figure_room import WITH_FIGURE, address_of, too_small
from tests.browser.test_lessons import predict
from tests.browser.visiting import Visitor, box_of
from tests.served import wait_until
from tests.shipped_lessons import LESSONS

LARGE = 18.1 / 12
LESSON = LESSONS["why_sqrt_d"]
READY = "() => Boolean(globalThis.explorerPresenter)"
PLAIN_HTTP = """delete Crypto.prototype.randomUUID;
Object.defineProperty(window, "sessionStorage", {
  get() { throw new DOMException("forbidden", "SecurityError"); },
});"""
"""As from another machine, in a browser that keeps nothing."""
ANSWERS = """() => new Promise(come => {
  const {name} = JSON.parse(sessionStorage.getItem("explorer-talk")), heard = [];
  const channel = new BroadcastChannel(name);
  channel.onmessage = ({data}) => { if (heard.push(data) && data.told?.since) come(heard.length); };
  channel.postMessage({told: {step: "A title", on: []}});
  channel.postMessage({again: true});
})"""
"""To what a tab tells, and to a question behind it, which alone is answered."""
TALK = "JSON.parse(sessionStorage.getItem('explorer-talk')).name"
ENLARGED = "Number(document.documentElement.style.zoom || 1)"


def begin(visitor: Visitor, address: str) -> None:
    """Open it, and present."""
    visitor.open(address).wait_for_function(READY)
    visitor.page.keyboard.press("f")
    visitor.presents()
    visitor.page.wait_for_function("() => document.fullscreenElement")
    visitor.settled()


def second_window(visitor: Visitor) -> Page:
    with visitor.context.expect_page() as opened:
        visitor.page.keyboard.press("s")
    return opened.value


def test_a_page_is_presented_and_left(visitor: Visitor) -> None:
    page = visitor.open("/attention?model=translation")
    page.wait_for_function(READY)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Show a pointer to everybody")
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    page.get_by_role("button", name="Present", exact=True).click()
    visitor.presents()
    sidebar = page.get_by_test_id("stSidebar")
    for hidden in (sidebar, *map(visitor.widget, ("export", "keep", "kept_session", "code"))):
        expect(hidden).to_have_count(1)
        expect(hidden).to_be_hidden()
    assert page.evaluate(ENLARGED) == pytest.approx(LARGE, rel=1e-4)
    assert visitor.query() == {"model": "translation", "present": "true"}

    canvas, at = visitor.cell("attention_head", 2, 1)
    box = box_of(canvas)
    sizes: list[float] = canvas.evaluate("canvas => [canvas.width, canvas.height]")
    assert [round(size) for size in sizes] == [round(box["width"]), round(box["height"])]
    page.mouse.move(box["x"] + LARGE * at["x"], box["y"] + LARGE * at["y"])
    sentence = visitor.widget("attention_head").locator(".sentence").first
    expect(sentence).to_contain_text("noir")
    expect(sentence).to_contain_text("black")

    spot = page.locator(".presenter-spot")
    expect(spot).to_be_hidden()
    page.keyboard.press("l")
    page.mouse.move(400, 300)
    box = box_of(spot)
    assert (round(box["x"] + box["width"] / 2), round(box["y"] + box["height"] / 2)) == (400, 300)
    assert spot.evaluate("spot => getComputedStyle(spot).pointerEvents") == "none"
    page.keyboard.press("l")
    expect(spot).to_be_hidden()

    notes = second_window(visitor)
    expect(notes.locator("h1")).to_have_text("Attention maps")
    expect(notes.locator(".words")).to_have_text("Open a lesson to see its notes here.")
    for part in (".where", ".next"):
        expect(notes.locator(part)).to_be_hidden()
    notes.close()

    field = page.get_by_label("Your sentence", exact=True)
    visitor.until_run(lambda: visitor.type("the cat"))
    field.press("f")  # a letter there
    expect(field).to_have_value("the catf")
    field.blur()
    visitor.rest()
    visitor.presents()
    visitor.asks(present="true")
    visitor.load()
    visitor.presents()
    page.keyboard.press("Escape")
    expect(sidebar).to_be_visible()
    visitor.presents(False)
    assert "present" not in visitor.query()


def test_a_blocked_second_window_is_said_and_full_screen_still_ends_it(visitor: Visitor) -> None:
    begin(visitor, "/attention")
    own = "window.ownOpen ??= window.open; window.open = "
    visitor.page.evaluate(f"() => {{ {own} () => null; }}")
    visitor.page.keyboard.press("s")
    visitor.page.evaluate(f"() => {{ {own} window.ownOpen; }}")
    said = visitor.page.get_by_role("dialog", name="Notes")
    expect(said).to_contain_text("allow pop-ups for this page")
    said.get_by_role("button", name="Close").click()
    visitor.page.evaluate("() => document.exitFullscreen()")
    visitor.presents(False)


def test_figures_of_a_lesson_have_most_of_the_window(visitor: Visitor) -> None:
    visitor.sized(1280, 720)
    faults = {}
    for page in sorted(WITH_FIGURE):
        visitor.open(f"{address_of(page)}&present=true&lesson=masks&lesson_step=2")
        faults[page] = too_small(visitor, presents=True)
    assert {page: found for page, found in faults.items() if found} == {}


def test_the_keys_step_what_is_in_view(visitor: Visitor) -> None:
    """In a hall of 1280 x 720, where not everything is, and on a larger screen as large."""
    visitor.sized(1280, 720)
    begin(visitor, "/head_steps?model=translation&up_to=scores")
    page = visitor.page
    expect(visitor.widget("stages").locator("canvas").first).to_be_in_viewport()
    expect(visitor.widget("up_to")).to_be_in_viewport(ratio=1)
    for key, stage in (("ArrowRight", "scaled"), ("Space", "masked"), ("Shift+Space", "scaled")):
        page.keyboard.press(key)
        visitor.asks(up_to=stage)

    visitor.open("/attention?model=translation&present=true")
    visitor.presents()
    canvas, at = visitor.cell("attention_head", 9, 9)
    assert box_of(canvas)["y"] + LARGE * at["y"] < 720

    visitor.open("/forward_pass?model=translation&present=true")
    visitor.drawn("stage_list")
    page.keyboard.press("PageDown")
    wait_until(lambda: "stage" in visitor.query(), "a stage in the address")

    visitor.open("/")
    visitor.sized(1920, 1080)
    begin(visitor, "/?model=shakespeare")
    assert page.evaluate(ENLARGED) == pytest.approx(1.5 * LARGE, rel=1e-4)
    picture, main = visitor.widget("pass_map"), page.get_by_test_id("stMain")
    said = picture.locator(".sentence").first
    expect(picture).to_be_in_viewport(ratio=1)
    expect(said).to_contain_text("What led to")
    main.evaluate("(main, top) => main.scrollTo({top, behavior: 'instant'})", 10_000)
    expect(picture).not_to_be_in_viewport()
    page.keyboard.press("Space")
    expect(picture).to_be_in_viewport(ratio=0.99)  # to the pixel
    expect(said).to_contain_text("The tokens enter")
    page.keyboard.press("ArrowLeft")
    expect(said).to_contain_text("What led to")


def link_for_a_class(lecturer: Visitor) -> str:
    """Made by Share: another head cannot be chosen in the bar, and the model is fixed."""
    page = lecturer.open(f"{LESSON.steps[0].begins}&lesson={LESSON.name}")
    field = lecturer.hide("Bar: Head")
    page.get_by_text("Fix the model", exact=True).click()
    expect(field).to_have_value(re.compile("hidden=head.*hidden=model|hidden=model.*hidden=head"))
    return field.input_value().removeprefix(lecturer.url)


def test_a_lecture(visitor: Visitor, visit: Visit, tmp_path: Path) -> None:
    """A link for a class is presented, with notes in a second window, from the first step on."""
    pictures = Path(os.environ.get("PICTURES") or tmp_path)
    visitor.sized(1280, 720)
    link = link_for_a_class(visitor)
    page, steps = visitor.page, LESSON.steps
    visitor.themed("dark")
    page.keyboard.press("Escape")
    begin(visitor, link)
    notes = second_window(visitor)
    expect(notes.locator(".where")).to_have_text(f"{LESSON.title} · 1 of {len(steps)}")
    pinned = "The pinned cell is <cls> as query and “was” as key"
    expect(notes.locator(".words")).to_contain_text(pinned, use_inner_text=True)
    expect(notes.locator(".next")).to_have_text(f"Next: {steps[1].title}")
    expect(notes.locator("dl")).to_contain_text("Head, step by step")
    title = page.locator(".lesson-strip .step")
    for at, step in enumerate(steps, 1):
        expect(notes.locator("h1")).to_have_text(step.title)
        expect(notes.locator(".where")).to_contain_text(f"{at} of {len(steps)}")
        visitor.rest()
        for hidden in ("head", "model"):
            expect(visitor.widget(hidden)).to_have_count(0)
        if step.predict:  # the answer is in sight, and the focus on it takes no key
            predict(visitor, step.predict)
            expect(visitor.widget("lesson_answer")).to_be_in_viewport(ratio=1)
        page.screenshot(path=pictures / f"lecture-step-{at}.png")
        if at < len(steps):
            (notes if at == 1 else page).keyboard.press("Space")
    forward = page.locator("[data-lesson-step='1']")
    for beyond in ("Space", "ArrowRight"):  # the end of a lesson is for its button alone
        expect(forward).to_have_text("Finish")
        forward.focus()
        page.keyboard.press(beyond)
        page.keyboard.press("PageUp")
        expect(title).to_have_text(steps[-2].title)
        page.keyboard.press("PageDown")
        expect(title).to_have_text(steps[-1].title)

    student = visit(width=1280, height=720)
    student.context.add_init_script(PLAIN_HTTP)
    student.open(page.url.removeprefix(visitor.url))
    student.presents()
    assert student.page.evaluate("typeof crypto.randomUUID") == "undefined"
    expect(student.page.locator(".lesson-strip .step")).to_have_text(steps[-1].title)
    expect(student.widget("head")).to_have_count(0)
    own = second_window(student)
    expect(own.locator("h1")).to_have_text(steps[-1].title)
    own.keyboard.press("PageUp")
    student.asks(lesson_step=str(len(steps) - 1))
    own.close()

    visitor.load(f"{page.url.removeprefix(visitor.url)}&hidden=adjust")  # as a link in this tab
    page.wait_for_function(READY)
    page.keyboard.press("s")  # the window that is open
    assert len(visitor.context.pages) == 2
    notes.keyboard.press("PageUp")
    visitor.asks(lesson_step=str(len(steps) - 1), present="true")
    expect(title).to_have_text(steps[-2].title)
    notes.close()
    page.keyboard.press("PageDown")
    expect(title).to_have_text(steps[-1].title)
    page.get_by_role("button", name="Finish").click()
    visitor.titled("Lessons")


def test_letters_are_keys_only_where_needed_and_can_be_turned_off(visitor: Visitor) -> None:
    """Also when the page is loaded anew; and a tab made from another is a talk of its own."""
    page = visitor.open("/attention")
    page.wait_for_function(READY)
    pages = len(visitor.context.pages)
    page.keyboard.press("s")
    page.keyboard.press("l")
    expect(page.locator(".presenter-spot")).to_be_hidden()
    assert len(visitor.context.pages) == pages
    keys = page.get_by_role("dialog", name="Keys")
    page.keyboard.press("?")
    keys.get_by_label("Use letters and ? as keys").uncheck()
    keys.get_by_role("button", name="Close").click()

    assert page.evaluate(ANSWERS) == 1
    with visitor.context.expect_page() as opened:
        page.evaluate("() => { window.open(location.href); }")
    double = opened.value
    double.wait_for_function(READY)
    talk = page.evaluate(TALK)
    assert talk != double.evaluate(TALK)
    double.close()
    for loaded_anew in (False, True):
        if loaded_anew:
            visitor.load()
            page.wait_for_function(READY)
            assert page.evaluate(TALK) == talk
        page.keyboard.press("f")
        page.keyboard.press("?")
        expect(keys).to_have_count(0)
        visitor.presents(False)
    page.keyboard.press("Control+/")
    keys.get_by_label("Use letters and ? as keys").check()
    keys.get_by_role("button", name="Close").click()
    page.keyboard.press("f")
    visitor.presents()
    page.keyboard.press("Control+/")
    keys.get_by_role("button", name="Show a pointer to everybody").press("Enter")
    expect(page.locator(".presenter-spot")).to_be_visible()
    expect(keys).to_have_count(0)
    page.keyboard.press("Control+/")
    keys.get_by_role("button", name="Start or stop presenting").click()
    visitor.presents(False)
