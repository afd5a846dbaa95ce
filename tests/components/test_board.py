"""The table of texts and bars in a real browser."""

from playwright.sync_api import expect

from tests.components.conftest import OpenDemo


def test_a_cell_says_itself_and_a_row_that_can_be_picked_is_picked_once(
    open_demo: OpenDemo,
) -> None:
    page = open_demo("board").page
    view = page.locator(".board")
    view.locator("td").first.hover()
    expect(view.locator(".sentence")).to_have_text("the, before: 0.5")
    expect(view.locator("b")).to_have_count(0)
    expect(view.get_by_role("button")).to_have_count(2)
    view.locator("tbody tr").last.click()
    view.get_by_role("button", name="Take <b>x</b>").click()
    expect(page.get_by_text("told (1,), run 2")).to_be_visible()
    view.get_by_role("button").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("told (0,), run 3")).to_be_visible()


def test_the_names_stay_in_sight_where_columns_are_many(open_demo: OpenDemo) -> None:
    page = open_demo("board", "wide").page
    page.locator(".board .stage").evaluate("stage => { stage.scrollLeft = stage.scrollWidth; }")
    expect(page.locator(".board td").last).to_be_in_viewport()
    expect(page.locator(".board tbody th")).to_be_in_viewport()
