"""The table of texts and bars in a real browser."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.components.conftest import OpenDemo


def test_a_cell_says_itself_and_a_row_is_picked_once(open_demo: OpenDemo) -> None:
    page = open_demo("board", "pick")
    view = page.locator(".board")
    view.locator("td").first.hover()
    expect(view.locator(".sentence")).to_have_text("the, before: 0.5")
    view.get_by_role("button", name="Take <b>x</b>").click()
    expect(page.get_by_text("chosen 1, run 2")).to_be_visible()
    expect(view.locator("b")).to_have_count(0)


def test_a_row_that_cannot_be_picked_is_not(open_demo: OpenDemo) -> None:
    page = open_demo("board", "pick")
    expect(page.locator(".board").get_by_role("button")).to_have_count(2)
    page.locator(".board tbody tr").last.click()
    page.locator(".board").get_by_role("button").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("chosen 0, run 2")).to_be_visible()


def test_the_names_stay_in_sight_where_columns_are_many(open_demo: OpenDemo) -> None:
    page = open_demo("board", "wide")
    stage = page.locator(".board .stage")
    stage.evaluate("stage => { stage.scrollLeft = stage.scrollWidth; }")
    expect(page.locator(".board td").last).to_be_in_viewport()
    expect(page.locator(".board tbody th")).to_be_in_viewport()
