"""Lessons are walked to their end in a real browser, as their readers would walk them.

The others are walked without one: `tests/views/test_lesson_steps.py`. `PICTURES=folder` keeps a
picture of each step.
"""

import os
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import FilePayload, Locator, expect

from explorer.lessons.lesson import Lesson, LessonStep, Predict
from explorer.lessons.lesson_catalog import FILES
from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import wait_until
from tests.shipped_lessons import LESSONS, WALKED
from tests.whole_numbers import UNSEEN, stands_in

PAINTED = Path(__file__).with_name("note_painted_words.js").read_text("utf-8")
ON_THE_PAGE = Path(__file__).with_name("words_of_page.js").read_text("utf-8")


def words(visitor: Visitor) -> str:
    """What stands on the page, with one space between words."""
    return " ".join(str(visitor.page.evaluate(ON_THE_PAGE)).translate(UNSEEN).split())


def sees(visitor: Visitor, texts: tuple[str, ...], where: str) -> None:
    """Wait until all of these stand on the page, which has everything that its address asks for."""
    missing = list(texts)

    def all_there() -> bool:
        shown = words(visitor)
        assert "; showing " not in shown, f"{where} opens what there is not"
        missing[:] = [text for text in missing if not stands_in(text, shown)]
        return not missing

    wait_until(all_there, f"{missing} on {where}", 60)


def move(visitor: Visitor, by: int) -> Locator:
    return visitor.page.locator(f'[data-lesson-step="{by}"]')


def stands_at(visitor: Visitor, lesson: Lesson, at: int) -> None:
    """Wait until this step is open: in the panel, and in the address, which is the one it names."""
    strip, step = visitor.page.locator(".lesson-strip"), lesson.steps[at - 1]
    expect(strip.locator(".count")).to_have_text(f"{at} of {len(lesson.steps)}")
    expect(strip.locator(".step")).to_have_text(step.title)
    visitor.asks(lesson=lesson.name, lesson_step=str(at))
    visitor.rest()
    if step.done:
        expect(strip.locator(".mark")).to_be_hidden()
    if step.control:
        expect(visitor.widget(step.control).first).to_be_visible()


def predict(visitor: Visitor, asked: Predict | None) -> None:
    """Take the right option; then the reason is there."""
    assert asked is not None
    panel = visitor.widget("lesson_words")
    panel.get_by_test_id("stButtonGroup").get_by_role("radio").nth(asked.right - 1).click()
    expect(panel.get_by_text("Right.", exact=True)).to_be_visible()


def do(visitor: Visitor, step: LessonStep) -> None:
    """What the step asks for, with the real control."""
    ((way, value),) = step.do.items()
    control = visitor.widget(step.control).first
    if way == "choose":
        choose(control, str(value))
    elif way == "type":
        field = control.locator("input, textarea").first
        field.fill(str(value))
        field.press("Enter" if field.evaluate("e => e.tagName") == "INPUT" else "Control+Enter")
    elif way == "press" and isinstance(value, list):
        keys = "input, [role=slider], button:not([aria-label^=Help]), canvas, [tabindex='0']"
        control.locator(keys).first.focus()
        for key in value:
            visitor.page.keyboard.press(key)
            visitor.rest()
    elif way == "cell" and isinstance(value, list):
        visitor.click(step.control, *value)
    else:
        control.locator("button, a, label, canvas").first.click()


def choose(control: Locator, option: str) -> None:
    """An option of a list, or of a few beside each other."""
    expect(control.locator("input, button").first).to_be_visible()
    if (box := control.get_by_role("combobox")).count():
        marked = control.page.locator("[role=option][data-focused=true]")

        def chosen() -> bool:
            box.click()
            box.fill("")
            box.fill(option)
            if marked.count() == 1 and marked.inner_text().strip() == option:
                box.press("Enter")
            box.blur()
            return bool(box.input_value() == option)

        wait_until(chosen, f"{option} in the list")
    else:
        control.get_by_role("radio", name=option, exact=True).click()


def done(visitor: Visitor, step: LessonStep) -> None:
    """Wait until the panel says so."""
    mark = visitor.page.locator(".lesson-strip .mark")
    expect(mark, f"{step.title}: {step.done}, and not {visitor.query()}").to_be_visible()


def walk(visitor: Visitor, lesson: Lesson) -> None:
    """From the page with all lessons; of predictions one is made, as all are judged alike."""
    page = visitor.open("/lessons")
    page.evaluate(PAINTED)
    visitor.until_run(page.get_by_role("link", name=f": {lesson.title}").click)
    asks = next((step for step in lesson.steps if step.predict), None)
    for at, step in enumerate(lesson.steps, 1):
        where = f"step {at} of {lesson.name}"
        stands_at(visitor, lesson, at)
        if step.see_first:
            sees(visitor, step.see_first, where)
        if step is asks and step.predict:
            predict(visitor, step.predict)
        if step.do:
            do(visitor, step)
            done(visitor, step)
            visitor.rest()
        sees(visitor, step.see, where)
        if folder := os.environ.get("PICTURES"):
            visitor.has_everything()
            visitor.page.screenshot(path=Path(folder) / f"{lesson.name}-{at:02}.png")
        visitor.until_run(move(visitor, 1).click)
    row = page.locator(".lesson-list li").filter(has_text=lesson.title)
    expect(row).to_contain_text("✓ done")


@pytest.mark.parametrize("name", WALKED)
def test_a_lesson_reaches_its_end(visitor: Visitor, name: str) -> None:
    walk(visitor, LESSONS[name])


FIRST = LESSONS["attention_by_hand"]
QUESTION = FIRST.steps[0].predict
DONE = "history.replaceState(null, '', document.location.href.replace('1+%C2%B7+the', ADDRESS))"


def opened(visitor: Visitor, at: int, **others: str) -> Lesson:
    """A step of a lesson by its link, by somebody who has done nothing yet."""
    more = urlencode({"lesson": FIRST.name, "lesson_step": at, **others})
    visitor.open("/lessons").evaluate("localStorage.clear()")
    visitor.open(f"{FIRST.steps[at - 1].begins}&{more}")
    stands_at(visitor, FIRST, at)
    return FIRST


def test_who_wanders_off_finds_back_and_is_shown_how(visitor: Visitor) -> None:
    lesson = opened(visitor, 1)
    query = visitor.widget("query")
    expect(visitor.page.get_by_role("button", name="Back to the step")).to_be_hidden()
    visitor.follow("Masks")
    expect(visitor.page.locator(".lesson-strip .step")).to_have_text(lesson.steps[0].title)
    visitor.press("Back to the step")
    stands_at(visitor, lesson, 1)
    visitor.asks(query=lesson.steps[0].choices["query"])
    expect(query).to_have_css("outline-style", "solid")
    predict(visitor, QUESTION)
    visitor.press("Show me")
    done(visitor, lesson.steps[0])
    expect(query.locator("input")).to_have_value("0 · <cls>")
    expect(query).to_have_css("outline-style", "none")
    visitor.until_run(visitor.page.go_back)
    expect(query.locator("input")).to_have_value("1 · the")
    visitor.press("Leave the lesson")
    expect(visitor.page.locator(".lesson-strip")).to_have_count(0)
    assert "lesson" not in visitor.query()
    assert urlsplit(visitor.page.url).path == "/query_key"


def test_keys_alone_go_through_it_and_what_a_script_writes_is_seen(visitor: Visitor) -> None:
    """What is done is kept in the browser; what a class does not see stays hidden."""
    lesson = opened(visitor, 1, sidebar="folded")
    visitor.page.evaluate(DONE.replace("ADDRESS", "'0+%C2%B7+%3Ccls%3E'"))
    done(visitor, lesson.steps[0])
    forward = move(visitor, 1)
    forward.focus()
    for at in (2, 3):
        visitor.until_run(lambda: visitor.page.keyboard.press("Enter"))
        stands_at(visitor, lesson, at)
        visitor.asks(sidebar="folded")
        expect(forward).to_be_focused()
    visitor.until_run(lambda: move(visitor, -1).press("Enter"))
    stands_at(visitor, lesson, 2)
    expect(move(visitor, -1)).to_be_focused()
    page = visitor.open("/lessons")
    row = page.locator(".lesson-list li").filter(has_text=lesson.title)
    expect(row).to_contain_text(f"1 of {len(lesson.steps)} done")
    visitor.until_run(row.get_by_role("link", name="Continue at step 2").click)
    stands_at(visitor, lesson, 2)
    visitor.open("/lessons")
    page.get_by_role("button", name="Forget my progress").click()
    expect(row.get_by_role("link", name=f"Start here: {lesson.title}")).to_be_visible()
    expect(row).not_to_contain_text("done")


def test_the_panel_never_covers_what_it_speaks_of(visitor: Visitor) -> None:
    """Also in a low and narrow window, where the control has to be scrolled to."""
    visitor.sized(390, 720)
    control = visitor.widget(str(opened(visitor, 1).steps[0].control))

    def is_above() -> bool:
        panel, box = visitor.widget("lesson_panel").bounding_box(), control.bounding_box()
        return bool(panel and box and box["y"] + box["height"] <= panel["y"])

    wait_until(is_above, "the control above the panel", 30)


def test_a_link_opens_a_lesson_and_one_of_one_s_own_is_there_after_a_reload(visit: Visit) -> None:
    """A link that names only the lesson opens its first step, as Start does."""
    visitor = visit()
    page = visitor.open("/attention?lesson=why_sqrt_d&sidebar=folded")
    visitor.asks(lesson="why_sqrt_d", lesson_step="1", pinned="q0k3", sidebar="folded")
    visitor.titled("Head, step by step")
    visitor.open("/lessons")
    content = (FILES / f"{FIRST.name}.toml").read_bytes()
    field = visitor.widget("lesson_file").locator("input[type=file]")
    mine = FilePayload(name="mine.toml", mimeType="text/plain", buffer=content)
    visitor.until_run(lambda: field.set_input_files(mine))
    visitor.until_run(page.locator(".lesson-list a[href*='lesson=mine']").click)
    expect(shown := page.get_by_role("button", name="Show me")).to_be_disabled()
    predict(visitor, QUESTION)
    visitor.until_run(shown.click)
    visitor.until_run(move(visitor, 1).click)
    visitor.load()
    stands_at(visitor, replace(FIRST, name="mine"), 2)
    expect(page.locator(".lesson-strip .dot").first).to_have_class(re.compile("done"))
