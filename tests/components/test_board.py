"""The table of texts and bars in a real browser."""

from playwright.sync_api import expect

from tests.components.conftest import OpenDemo, told


def test_a_cell_says_itself_and_a_row_to_be_picked_is_picked_once(open_demo: OpenDemo) -> None:
    visitor = open_demo("board")
    view = visitor.widget("board").locator(".board")
    view.locator("td").first.hover()
    expect(view.locator(".sentence")).to_have_text("the, before: 0.5")
    assert view.locator("td .text").all_inner_texts() == ["0.5", "cut"] * 3
    expect(view.locator("b")).to_have_count(0)
    expect(view.get_by_role("button")).to_have_count(2)
    view.locator("tbody tr").last.click()
    view.get_by_role("button", name="Take <b>x</b>").click()
    told(visitor, "(1,), run 2")
    view.get_by_role("button").first.focus()
    visitor.page.keyboard.press("Enter")
    told(visitor, "(0,), run 3")

    wide = visitor.widget("wide").locator(".board")  # the names stay in sight
    wide.locator(".stage").evaluate("stage => { stage.scrollLeft = stage.scrollWidth; }")
    expect(wide.locator("td").last).to_be_in_viewport()
    expect(wide.locator("tbody th")).to_be_in_viewport()
