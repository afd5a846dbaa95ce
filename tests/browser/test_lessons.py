"""Every lesson is walked to its end in a real browser, as its reader would walk it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from explorer.lessons import shelf
from explorer.lessons.lesson import Lesson, Predict, Step
from explorer.lessons.lesson_file import read_file
from tests.browser.truth.screen import UNSEEN
from tests.browser.visiting import Visitor
from tests.served import wait_until

FILES = sorted(shelf.FILES.glob("*.toml"))
PAINTED = """() => {
  const pen = CanvasRenderingContext2D.prototype, write = pen.fillText, clear = pen.clearRect;
  pen.fillText = function (text, ...rest) {
    (this.canvas.painted ??= []).push(text);
    return write.call(this, text, ...rest);
  };
  pen.clearRect = function (...rest) {
    this.canvas.painted = [];
    return clear.apply(this, rest);
  };
}"""
"""A canvas knows what was written on it since it was cleared."""
ON_THE_PAGE = """() => {
  const found = [];
  const read = node => {
    if (node.nodeType === Node.TEXT_NODE) return found.push(node.textContent);
    if (![Node.ELEMENT_NODE, Node.DOCUMENT_FRAGMENT_NODE].includes(node.nodeType)) return;
    if (node.matches?.("style, script, .st-key-lesson_panel")) return;
    const style = node.matches && getComputedStyle(node);  // a fragment has none
    if (style?.display === "none" || style?.visibility === "hidden") return;
    const block = style && !style.display.startsWith("inline");
    if (block) found.push(" ");
    for (const name of ["aria-label", "aria-valuetext", "alt"]) {
      if (node.getAttribute?.(name)) found.push(` ${node.getAttribute(name)} `);
    }
    if (node.matches?.("input, textarea")) found.push(` ${node.value} `);
    if (node.painted) found.push(` ${node.painted.join(" ")} `);
    for (const cell of node.matches?.("canvas") ? node.querySelectorAll("td, th") : []) {
      found.push(` ${cell.textContent} `);  // a table that is painted has them beside
    }
    for (const child of (node.shadowRoot ?? node).childNodes) read(child);
    if (block) found.push(" ");
  };
  read(document.querySelector("[data-testid=stMain]"));
  return found.join("");
}"""
"""All that a person can read in the page: its words, its fields, its canvases and what they say."""


def words(visitor: Visitor) -> str:
    """What stands on the page, with one space between words."""
    return " ".join(str(visitor.page.evaluate(ON_THE_PAGE)).translate(UNSEEN).split())


def sees(visitor: Visitor, texts: tuple[str, ...], where: str) -> None:
    """Wait until all of these stand on the page."""
    for text in texts:
        wait_until(lambda text=text: text in words(visitor), f"“{text}” on {where}", 30)  # type: ignore[misc]


def begin(visitor: Visitor, lesson: Lesson) -> None:
    """From the page with all lessons."""
    page = visitor.open("/lessons")
    page.evaluate("localStorage.clear()")
    page.evaluate(PAINTED)
    link = page.get_by_role("link", name=f"Start: {lesson.title}", exact=True)
    visitor.until_run(link.click)


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


def predict(visitor: Visitor, asked: Predict) -> None:
    """Take the right option; then the reason is there."""
    panel = visitor.widget("lesson_words")
    options = panel.get_by_test_id("stButtonGroup").get_by_role("radio")
    options.nth(asked.right - 1).click()
    expect(panel.get_by_text("Right.", exact=True)).to_be_visible()


def do(visitor: Visitor, step: Step) -> None:
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
        control.locator("input, button, canvas, [tabindex='0']").first.focus()
        for key in value:
            visitor.page.keyboard.press(key)
            visitor.rest()
    elif way == "cell" and isinstance(value, list):
        visitor.click(step.control, *value)
    else:
        control.locator("button, a, label, canvas").first.click()


def choose(control: Locator, option: str) -> None:
    """An option of a list, of a few beside each other, or of a menu."""
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
    elif (radio := control.get_by_role("radio", name=option, exact=True)).count():
        radio.click()
    else:
        control.locator("button").first.click()
        control.page.get_by_role("menuitem", name=option, exact=True).click()


def done(visitor: Visitor, step: Step) -> None:
    """Wait until the panel says so."""
    mark = visitor.page.locator(".lesson-strip .mark")
    expect(mark, f"{step.title}: {step.done}, and not {visitor.query()}").to_be_visible()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_lesson_is_walked_to_its_end(visitor: Visitor, path: Path) -> None:
    lesson = read_file(path)
    begin(visitor, lesson)
    for at, step in enumerate(lesson.steps, 1):
        where = f"step {at} of {lesson.name}"
        stands_at(visitor, lesson, at)
        sees(visitor, step.see_first, where)
        if step.predict is not None:
            predict(visitor, step.predict)
        if step.do:
            do(visitor, step)
            done(visitor, step)
            visitor.rest()
        sees(visitor, step.see, where)
        visitor.until_run(move(visitor, 1).click)
    row = visitor.page.locator(".lesson-list li").filter(has_text=lesson.title)
    expect(row).to_contain_text("✓ done")
