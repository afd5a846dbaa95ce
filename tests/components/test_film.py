"""A film in a real browser: every way to a moment shows it in all views, and asks nobody."""

from playwright.sync_api import Page, expect

from tests.browser.visiting import Visitor
from tests.components.conftest import OpenDemo

STEPS = (0, 1, 2, 10, 100)


def shows(visitor: Visitor, at: int) -> None:
    """The moment is on screen: the slider, what is said of it, and the map."""
    slider = visitor.page.get_by_role("slider", name="Training step")
    expect(slider).to_have_attribute("aria-valuetext", f"Step {STEPS[at]}")
    expect(visitor.page.locator(".film dd")).to_have_text(f"<i>{STEPS[at]}</i>")
    expect(visitor.point("film_map", 0, 0)).to_contain_text(f"{at / 8:.3g}")
    visitor.away()


def in_address(page: Page, step: int | None) -> None:
    """The address names the step, or none."""
    page.wait_for_function(
        "step => new URLSearchParams(document.location.search).get('film_step') === step",
        arg=None if step is None else str(step),
    )


def test_keys_buttons_and_the_slider_show_each_moment_and_ask_nobody(open_demo: OpenDemo) -> None:
    visitor = open_demo("film")
    page, sent = visitor.page, list[object]()
    visitor.socket.on("framesent", lambda message: sent.append(message))
    shows(visitor, 4)
    slider = page.get_by_role("slider", name="Training step")
    for at in (3, 2, 1, 0):
        slider.press("ArrowLeft")
        shows(visitor, at)
    slider.press("ArrowLeft")
    shows(visitor, 0)
    page.get_by_role("button", name="Next").click()
    shows(visitor, 1)
    page.keyboard.press("ArrowRight")
    shows(visitor, 2)
    slider.press("End")
    shows(visitor, 4)
    slider.press("Home")
    shows(visitor, 0)
    in_address(page, 0)
    assert not sent


def test_dragging_in_the_curves_goes_to_the_nearest_moment(open_demo: OpenDemo) -> None:
    visitor = open_demo("film")
    page = visitor.page
    box = page.locator(".film canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 46, box["y"] + 60)
    page.mouse.down()
    shown = page.get_by_role("slider", name="Training step")
    expect(shown).to_have_attribute("aria-valuetext", "Step 0")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60, steps=3)
    expect(shown).to_have_attribute("aria-valuetext", "Step 10")
    page.mouse.up()
    page.mouse.move(box["x"] + 46, box["y"] + 60)
    shows(visitor, 3)


def test_playing_shows_each_moment_once_and_ends_with_the_last(open_demo: OpenDemo) -> None:
    visitor = open_demo("film")
    page = visitor.page
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_label("Speed").select_option("4")
    page.evaluate(SEEN)
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => seen.length === 5")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    assert page.evaluate("seen") == [f"Step {step}" for step in STEPS]


SEEN = """() => {
  globalThis.seen = [];
  document.addEventListener("explorer-frame", () => {
    const inside = root => [...root.querySelectorAll("*")].map(at => at.shadowRoot).filter(Boolean);
    const find = root => root.querySelector(".film .where") ?? inside(root).map(find).find(Boolean);
    setTimeout(() => seen.push(find(document).textContent));
  });
}"""


def test_the_step_is_kept_in_the_address_and_when_the_page_is_drawn_anew(
    open_demo: OpenDemo,
) -> None:
    visitor = open_demo("film")
    page = visitor.page
    page.get_by_role("slider", name="Training step").press("Home")
    in_address(page, 0)
    page.get_by_label("Words").fill("drawn anew")
    page.get_by_label("Words").press("Enter")
    expect(page.get_by_text("told None, run 2")).to_be_visible()
    shows(visitor, 0)
    page.reload()
    shows(visitor, 0)
    page.get_by_role("slider", name="Training step").press("End")
    in_address(page, None)


def test_the_moment_on_screen_is_told_to_be_compared(open_demo: OpenDemo) -> None:
    page = open_demo("film").page
    page.get_by_role("slider", name="Training step").press("ArrowLeft")
    page.get_by_role("button", name="Compare with the last step").click()
    expect(page.get_by_text("told (3,), run 2")).to_be_visible()


def test_words_are_no_markup_and_it_is_drawn_in_the_dark(
    open_demo: OpenDemo,
) -> None:
    visitor = open_demo("film", dark=True)
    expect(visitor.page.locator(".film i")).to_have_count(0)
    shows(visitor, 4)
