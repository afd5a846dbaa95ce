"""The tree of tokens in a real browser."""

from playwright.sync_api import Locator, expect

from tests.components.conftest import OpenDemo, told
from tests.served import wait_until

MORE = """stage => ["left", "right", "top", "bottom"].map(
  side => getComputedStyle(stage).getPropertyValue(`--more-${side}`)).join(" ")"""


def fades(stage: Locator, sides: str) -> None:
    """Wait until the tree fades at the left, right, top and bottom as these ones and zeros say."""
    wait_until(lambda: stage.evaluate(MORE) == sides, f"a tree that goes on at {sides}")


def test_a_node_says_itself_is_picked_and_the_end_of_a_long_way_seen(open_demo: OpenDemo) -> None:
    visitor = open_demo("tree")
    view, long = visitor.widget("tree").locator(".tree"), visitor.widget("long").locator(".tree")
    assert view.locator(".node .number").all_inner_texts() == ["", "0.5", "0.25", "0.1"]
    view.locator(".node").nth(2).hover()
    expect(view.locator(".sentence")).to_have_text("<i>b</i> is cut")
    expect(view.locator("path")).to_have_count(3)
    expect(view.locator(".node.on")).to_have_count(2)
    fades(view.locator(".stage"), "0 0 0 0")
    view.get_by_role("button", name="c is forced").click()
    told(visitor, "(3,), run 2")
    first, last = long.locator(".node").first, long.locator(".node").last
    expect(last).to_be_in_viewport()
    expect(first).not_to_be_in_viewport()
    fades(long.locator(".stage"), "1 0 0 0")
    first.scroll_into_view_if_needed()
    fades(long.locator(".stage"), "0 1 0 0")
