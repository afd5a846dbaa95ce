"""The tree of tokens in a real browser."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.components.conftest import OpenDemo
from tests.served import wait_until


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


def test_a_tree_fades_where_it_goes_on(open_demo: OpenDemo) -> None:
    page = open_demo("tree", "long")
    stage = page.locator(".tree .stage")
    more = """(stage, sides) => sides.map(side => stage.style.getPropertyValue(`--more-${side}`))"""
    assert stage.evaluate(more, ["left", "right", "top", "bottom"]) == ["1", "0", "0", "0"]
    page.locator(".tree .node").first.scroll_into_view_if_needed()
    wait_until(lambda: stage.evaluate(more, ["left", "right"]) == ["0", "1"], "the other end")
    small = open_demo("tree", "small").locator(".tree .stage")
    assert small.evaluate(more, ["left", "right"]) == ["0", "0"]
