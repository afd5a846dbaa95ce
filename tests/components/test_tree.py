"""The tree of tokens in a real browser."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.components.conftest import OpenDemo


def test_a_node_says_itself_and_is_picked(open_demo: OpenDemo) -> None:
    page = open_demo("tree", "small")
    view = page.locator(".tree")
    view.locator(".node").nth(2).hover()
    expect(view.locator(".sentence")).to_have_text("<i>b</i> is cut")
    expect(view.locator("path")).to_have_count(3)
    expect(view.locator(".node.on")).to_have_count(2)
    view.get_by_role("button", name="c is forced").click()
    expect(page.get_by_text("chosen 3, run 2")).to_be_visible()


def test_the_end_of_a_long_way_is_in_sight(open_demo: OpenDemo) -> None:
    page = open_demo("tree", "long")
    expect(page.locator(".tree .node").last).to_be_in_viewport()
    expect(page.locator(".tree .node").first).not_to_be_in_viewport()
