"""A lecture from start to end, as a person gives it.

`PICTURES=folder` keeps a picture of each moment, to be looked at.
"""

import os
import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.test_lessons import LESSONS
from tests.browser.test_presenter import READY, is_presenting
from tests.browser.visiting import Visitor
from tests.served import wait_until

LESSON = LESSONS["why_sqrt_d"]


def link_for_a_class(lecturer: Visitor) -> str:
    """Made by Share: another head cannot be chosen in the bar, and the model is fixed."""
    first = LESSON.steps[0]
    page = lecturer.open(f"{first.begins}&lesson={LESSON.name}")
    lecturer.rest()
    page.get_by_role("button", name="Share").click()
    page.get_by_role("combobox", name="Hide controls").fill("Bar: Head")
    page.get_by_role("option", name="Bar: Head", exact=True).click()
    page.get_by_text("Fix the model", exact=True).click()
    field = page.get_by_label("Link to this page")
    expect(field).to_have_value(re.compile("hidden=head.*hidden=model|hidden=model.*hidden=head"))
    return field.input_value().removeprefix(lecturer.url)


def test_a_lecture(visit: Visit, tmp_path: Path) -> None:
    pictures = Path(os.environ.get("PICTURES") or tmp_path)
    hall = visit(width=1280, height=720, dark=True)
    link = link_for_a_class(hall)
    page = hall.page
    page.screenshot(path=pictures / "lecture-share.png")
    page.goto("about:blank")
    hall.open(link)
    wait_until(lambda: hall.page.evaluate(READY), "the code of the presenter")
    page.keyboard.press("f")
    wait_until(lambda: is_presenting(hall), "presenter mode")
    with hall.context.expect_page() as opened:
        page.keyboard.press("s")
    notes = opened.value
    page.keyboard.press("l")
    page.mouse.move(600, 300)
    expect(page.locator(".presenter-spot")).to_be_visible()
    steps = int(page.locator(".lesson-strip .dot").count())
    for at in range(1, steps + 1):
        expect(notes.locator(".where")).to_contain_text(f"{at} of {steps}")
        hall.rest()
        expect(hall.widget("head")).to_have_count(0)
        expect(hall.widget("model")).to_have_count(0)
        page.screenshot(path=pictures / f"lecture-step-{at}.png")
        if at < steps:
            page.keyboard.press("Space")
    notes.screenshot(path=pictures / "lecture-notes.png")
    notes.close()
    hall.asks(present="true", lesson_step=str(steps))
    title = page.get_by_role("heading", level=1).text_content() or ""
    student = visit(width=1280, height=720)
    student.open(page.url.removeprefix(hall.url))
    wait_until(lambda: is_presenting(student), "presenter mode by a link")
    expect(student.page.get_by_role("heading", level=1)).to_have_text(title)
    expect(student.widget("head")).to_have_count(0)
    student.page.screenshot(path=pictures / "lecture-student.png")
