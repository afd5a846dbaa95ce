"""The list of stages in a real browser: one section open, moved by key and click."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.components.conftest import OpenDemo


def here(page: Page) -> Locator:
    return page.locator(".stage_list [aria-current=step]")


def test_only_the_section_of_the_chosen_stage_is_open_beside_the_norm_of_the_stream(
    open_demo: OpenDemo,
) -> None:
    page = open_demo("stage_list", "small").page
    view = page.locator(".view.stage_list")
    expect(view.locator(".one")).to_have_text(["Tokens", "Sum"])
    first = view.locator(".section > button span:first-child").first
    expect(first).to_have_text("<i>Embedding</i>")
    widths = [bar.evaluate("bar => bar.style.width") for bar in view.locator(".bar i").all()]
    assert widths == ["50%", "100%", "100%", "0%"]
    expect(view.locator(".norm").first).to_have_text("1.00")
    expect(view.locator(".bar").last).to_be_hidden()
    expect(view.get_by_role("button", name="Back", exact=True)).to_be_disabled()
    view.get_by_role("button", name="Layer 1").click()
    expect(view.locator(".one")).to_have_text(["Queries", "Add", "Hidden"])
    expect(view.locator(".branch")).to_have_text(["self-attention", "feed-forward"])
    expect(view.locator(".one.stream")).to_have_text(["Add"])
    expect(view.locator(".where")).to_have_text("6 of 9")
    expect(page.get_by_text("told (5,), run 2")).to_be_visible()


def test_keys_move_and_stop_at_both_ends_and_who_writes_does_not_move(open_demo: OpenDemo) -> None:
    page = open_demo("stage_list", "small").page
    for press, title in (
        ("ArrowLeft", "Tokens"),
        (" ", "Sum"),
        ("ArrowDown", "Queries"),
        ("ArrowUp", "Sum"),
    ):
        page.keyboard.press(press)
        expect(here(page)).to_have_text(title)
    expect(page.get_by_text("told (1,), run")).to_be_visible()
    words = page.get_by_label("Words")
    for press in ("a", " ", "ArrowLeft"):
        words.press(press)
    expect(words).to_have_value("a ")
    expect(here(page)).to_have_text("Sum")
    page.get_by_role("button", name="To the end").click()
    expect(here(page)).to_have_text("Logits")
    expect(page.get_by_role("button", name="Next", exact=True)).to_be_disabled()
    expect(page.locator(".stage_list .spoken")).to_have_text("Answer, Logits")


def test_in_a_long_list_the_chosen_stage_is_in_view(open_demo: OpenDemo) -> None:
    page = open_demo("stage_list", "long").page
    page.get_by_role("button", name="To the end").click()
    expect(here(page)).to_have_text("Logits")
    expect(here(page)).to_be_in_viewport()
    assert page.locator(".stage_list .stage").evaluate("stage => stage.scrollTop") > 0
    assert page.locator("[data-testid=stMain]").evaluate("main => main.scrollTop") == 0
