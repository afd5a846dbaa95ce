"""The tree of tokens in a real browser."""

from playwright.sync_api import Locator, expect

from tests.components.conftest import OpenDemo
from tests.served import wait_until

MORE = """stage => ["left", "right", "top", "bottom"].map(
  side => stage.style.getPropertyValue(`--more-${side}`)).join(" ")"""


def fades(stage: Locator, sides: str) -> None:
    """Wait until the tree fades at the left, right, top and bottom as these ones and zeros say."""
    wait_until(lambda: stage.evaluate(MORE) == sides, f"a tree that goes on at {sides}")


def test_a_node_says_itself_and_is_picked(open_demo: OpenDemo) -> None:
    page = open_demo("tree", "small").page
    view = page.locator(".tree")
    view.locator(".node").nth(2).hover()
    expect(view.locator(".sentence")).to_have_text("<i>b</i> is cut")
    expect(view.locator("path")).to_have_count(3)
    expect(view.locator(".node.on")).to_have_count(2)
    fades(view.locator(".stage"), "0 0 0 0")
    view.get_by_role("button", name="c is forced").click()
    expect(page.get_by_text("told (3,), run 2")).to_be_visible()


def test_the_end_of_a_long_way_is_in_sight_and_the_tree_fades_where_it_goes_on(
    open_demo: OpenDemo,
) -> None:
    view = open_demo("tree", "long").page.locator(".tree")
    first, last = view.locator(".node").first, view.locator(".node").last
    expect(last).to_be_in_viewport()
    expect(first).not_to_be_in_viewport()
    fades(view.locator(".stage"), "1 0 0 0")
    first.scroll_into_view_if_needed()
    fades(view.locator(".stage"), "0 1 0 0")
