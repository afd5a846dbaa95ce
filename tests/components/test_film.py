"""A film in a real browser: every way to a moment shows it in all views, and asks nobody."""

from playwright.sync_api import Page, expect

from tests.browser.visiting import Visitor, box_of
from tests.components.conftest import OpenDemo, told
from tests.components.samples import FILM_STEPS

SEEN = """() => {
  globalThis.seen = [];
  document.addEventListener("explorer-frame", () => {
    const inside = root => [...root.querySelectorAll("*")].map(at => at.shadowRoot).filter(Boolean);
    const find = root => root.querySelector(".film .where") ?? inside(root).map(find).find(Boolean);
    setTimeout(() => seen.push(find(document).textContent));
  });
}"""


def shows(visitor: Visitor, at: int) -> None:
    """The moment is on screen: the slider, what is said of it, and the map."""
    slider = visitor.page.get_by_role("slider", name="Training step")
    expect(slider).to_have_attribute("aria-valuetext", f"Step {FILM_STEPS[at]}")
    expect(visitor.page.locator(".film dd")).to_have_text(f"<i>{FILM_STEPS[at]}</i>")
    expect(visitor.point("film_map", 0, 0)).to_contain_text(f"{at / 8:.3g}")
    visitor.away()


def in_address(page: Page, step: int | None) -> None:
    """The address names the step, or none."""
    named = "step => new URLSearchParams(document.location.search).get('film_step') === step"
    page.wait_for_function(named, arg=None if step is None else str(step))


def test_every_way_to_a_moment_shows_it_and_asks_nobody(open_demo: OpenDemo) -> None:
    visitor = open_demo("film", "kept", "&film_step=2")
    page, slider = visitor.page, visitor.page.get_by_role("slider", name="Training step")
    sent, note = list[object](), lambda message: sent.append(message)
    visitor.socket.on("framesent", note)
    expect(page.locator(".film i")).to_have_count(0)  # what is said is no markup
    shows(visitor, 2)
    slider.press("End")
    shows(visitor, 4)
    for at in (3, 2, 1, 0, 0):
        slider.press("ArrowLeft")
        shows(visitor, at)
    page.get_by_role("button", name="Next").click()
    shows(visitor, 1)
    page.keyboard.press("ArrowRight")
    shows(visitor, 2)
    slider.press("Home")
    shows(visitor, 0)
    in_address(page, 0)
    page.locator(".film canvas").scroll_into_view_if_needed()
    box = box_of(page.locator(".film canvas"))
    page.mouse.move(box["x"] + 46, box["y"] + 60)  # in the curves one drags to the nearest moment
    page.mouse.down()
    expect(slider).to_have_attribute("aria-valuetext", "Step 0")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60, steps=3)
    expect(slider).to_have_attribute("aria-valuetext", "Step 10")
    page.mouse.up()
    page.mouse.move(box["x"] + 46, box["y"] + 60)
    shows(visitor, 3)
    assert not sent
    visitor.socket.remove_listener("framesent", note)

    slider.press("Home")  # the step is in the address, is compared, and is played to the last
    in_address(page, 0)
    page.get_by_label("Words").fill("drawn anew")
    page.get_by_label("Words").press("Enter")
    told(visitor, "None, run 2")
    shows(visitor, 0)
    slider.press("End")
    in_address(page, None)
    slider.press("ArrowLeft")
    page.get_by_role("button", name="Compare with the last step").click()
    told(visitor, "(3,), run 3")
    slider.press("End")  # from its end it is played from the first on, each moment once
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_label("Speed").select_option("4")
    page.evaluate(SEEN)
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => seen.includes('Step 100')")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    assert page.evaluate("seen") == [f"Step {step}" for step in FILM_STEPS]
