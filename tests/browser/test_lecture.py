"""A lecture from start to end, as a person gives it; its pictures are for looking at."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.test_presenter import READY, is_presenting
from tests.served import wait_until


def test_a_lecture(visit: Visit, tmp_path: Path) -> None:
    hall = visit(width=1280, height=720, dark=True)
    page = hall.open("/head_steps?lesson=why_sqrt_d")
    wait_until(lambda: hall.page.evaluate(READY), "the code of the presenter")
    with hall.context.expect_page() as opened:
        page.keyboard.press("s")
    notes = opened.value
    page.keyboard.press("f")
    wait_until(lambda: is_presenting(hall), "presenter mode")
    page.keyboard.press("l")
    page.mouse.move(600, 300)
    expect(page.locator(".presenter-spot")).to_be_visible()
    steps = int(page.locator(".lesson-strip .dot").count())
    for at in range(1, steps + 1):
        expect(notes.locator(".where")).to_contain_text(f"{at} of {steps}")
        hall.rest()
        page.screenshot(path=tmp_path / f"step_{at}.png")
        if at < steps:
            page.keyboard.press("PageDown")
    notes.screenshot(path=tmp_path / "notes.png")
    notes.close()
    hall.asks(present="true", lesson_step=str(steps))
    title = page.get_by_role("heading", level=1).text_content() or ""
    student = visit(width=1280, height=720)
    student.open(page.url.removeprefix(hall.url))
    wait_until(lambda: is_presenting(student), "presenter mode by a link")
    expect(student.page.get_by_role("heading", level=1)).to_have_text(title)
    student.page.screenshot(path=tmp_path / "student.png")
