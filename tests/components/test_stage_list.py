"""The list of stages in a real browser: one section open, moved by key and click."""

from playwright.sync_api import Locator, Page, expect

from tests.components.conftest import OpenDemo, told

LEFT = """async button => {
  button.click();
  const here = location.href;
  history.replaceState({}, "", "/");
  await new Promise(come => setTimeout(come, 500));  // longer than the hand has to rest
  history.replaceState({}, "", here);
}"""
"""A step that is taken right before Back."""


def here(page: Page) -> Locator:
    return page.locator(".stage_list [aria-current=step]")


def test_only_the_section_of_the_chosen_stage_is_open_and_keys_move(open_demo: OpenDemo) -> None:
    visitor = open_demo("stage_list")
    page, view = visitor.page, visitor.page.locator(".view.stage_list")
    expect(view.locator(".one")).to_have_text(["Tokens", "Sum"])
    first = view.locator(".section > button span:first-child").first
    expect(first).to_have_text("<i>Embedding</i>")
    widths = [bar.evaluate("bar => bar.style.width") for bar in view.locator(".bar i").all()]
    assert widths == ["50%", "100%", "100%", "0%"]  # beside the norm of the stream
    expect(view.locator(".norm").first).to_have_text("1.00")
    expect(view.locator(".bar").last).to_be_hidden()
    expect(view.get_by_role("button", name="Back", exact=True)).to_be_disabled()
    main = page.get_by_test_id("stMain")
    main.click(position={"x": 600, "y": 880})
    expect(main).to_be_focused()
    titles = {"ArrowLeft": "Tokens", " ": "Sum", "ArrowDown": "Queries", "ArrowUp": "Sum"}
    for press, title in titles.items():
        page.keyboard.press(press)
        expect(here(page)).to_have_text(title)
        assert page.locator("[data-testid=stMain]:focus-visible").count() == 0, "a frame is drawn"
    told(visitor, "(1,), run")
    words = page.get_by_label("Words")
    for press in ("a", " ", "ArrowLeft"):  # who writes does not move
        words.press(press)
    expect(words).to_have_value("a ")
    expect(here(page)).to_have_text("Sum")
    view.get_by_role("button", name="Layer 1").click()
    expect(view.locator(".one")).to_have_text(["Queries", "Add", "Hidden"])
    expect(view.locator(".branch")).to_have_text(["self-attention", "feed-forward"])
    expect(view.locator(".one.stream")).to_have_text(["Add"])
    expect(view.locator(".where")).to_have_text("6 of 9")
    told(visitor, "(5,), run")
    page.get_by_role("button", name="To the end").click()
    expect(here(page)).to_have_text("Logits")
    expect(page.get_by_role("button", name="Next", exact=True)).to_be_disabled()
    expect(view.locator(".spoken")).to_have_text("Answer, Logits")


def test_after_a_click_on_a_cell_keys_step_after_tab_arrows_move_it(open_demo: OpenDemo) -> None:
    visitor = open_demo("stage_list", "beside")
    page, canvas = visitor.page, visitor.page.locator(".matrix canvas")
    forward = page.get_by_role("button", name="Next", exact=True)
    forward.evaluate(LEFT)  # nothing is told, or the server would return to the page that was left
    expect(here(page)).to_have_text("Sum")
    forward.click()
    told(visitor, "(2,), run 2")
    pinned = page.locator(".matrix .place")
    visitor.click("matrix", 2, 1)
    visitor.away()
    for press, title in (("ArrowRight", "Add"), (" ", "Hidden"), ("ArrowDown", "Queries")):
        page.keyboard.press(press)
        expect(here(page)).to_have_text(title)
        expect(pinned).to_have_text("query 2, key 1")
    visitor.click("matrix", 3, 1)
    visitor.away()
    page.keyboard.press("Escape")  # the cell that was clicked still hears it
    expect(pinned).to_have_text("")
    visitor.click("matrix", 3, 1)
    visitor.away()
    page.get_by_label("Words").focus()
    page.keyboard.press("Tab")
    expect(canvas).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(pinned).to_have_text("query 3, key 2")
    expect(here(page)).to_have_text("Queries")
    page.keyboard.press(" ")
    expect(here(page)).to_have_text("Add")
    expect(canvas).to_be_focused()
    told(visitor, "(6,)")

    page = open_demo("stage_list", "long").page  # it fades where it goes on
    stage = page.locator(".stage_list .stage")
    style = "getComputedStyle(stage).getPropertyValue"
    goes_on = f"stage => ['top', 'bottom'].map(at => {style}(`--more-${{at}}`))"
    assert stage.evaluate(goes_on) == ["0", "1"]
    assert "linear-gradient" in stage.evaluate("stage => getComputedStyle(stage).maskImage")
    page.get_by_role("button", name="To the end").click()
    expect(here(page)).to_have_text("Logits")
    expect(here(page)).to_be_in_viewport()
    assert stage.evaluate("stage => stage.scrollTop") > 0
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollTop") == 0
    stage.evaluate("stage => { stage.scrollTop = stage.scrollHeight; }")
    expect(stage).to_have_css("--more-bottom", "0")
    assert stage.evaluate(goes_on) == ["1", "0"]
