"""Steps in a real browser: by hand, by key, and in time, each one drawn."""

from playwright.sync_api import Page, expect

from tests.components.conftest import OpenDemo, told


def plays(page: Page, is_on: bool = True) -> None:
    button = page.get_by_role("button", name="Pause" if is_on else "Play", exact=True)
    expect(button).to_be_visible()


def test_buttons_keys_and_the_slider_step(open_demo: OpenDemo) -> None:
    visitor = open_demo("player")
    page = visitor.page
    where, place = page.locator(".where"), page.get_by_role("slider", name="Step")
    expect(page.get_by_role("button", name="Back")).to_be_disabled()
    expect(page.locator(".player .play")).to_be_hidden()  # who asks for less motion only steps
    expect(page.get_by_label("Speed")).to_be_hidden()
    page.keyboard.press("p")
    page.get_by_role("button", name="Next").click()
    expect(where).to_have_text("Step: 1 of 4")
    told(visitor, "(1,), run 2")
    for press, text in (("ArrowRight", "2"), ("ArrowRight", "3"), ("ArrowLeft", "2")):
        page.keyboard.press(press)
        expect(where).to_have_text(f"Step: {text} of 4")
        told(visitor, f"({text},), run")
    words = page.get_by_label("Words")
    words.press("ArrowLeft")
    words.press("p")
    expect(words).to_have_value("p")
    expect(where).to_have_text("Step: 2 of 4")
    place.press("End")
    told(visitor, "(4,), run")
    expect(place).to_have_attribute("aria-valuetext", "4 of 4")
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    expect(page.locator(".player .playing")).to_have_count(0)


def test_playing_draws_every_step_and_ends_at_the_last_or_an_action(open_demo: OpenDemo) -> None:
    page = open_demo("player", moves=True).page
    page.get_by_label("Speed").select_option("4")
    page.get_by_role("button", name="Play").click()
    plays(page)
    expect(page.get_by_text("seen [0, 1, 2, 3, 4]")).to_be_visible()
    plays(page, is_on=False)
    page.keyboard.press("p")
    expect(page.get_by_text("seen [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]")).to_be_visible()
    plays(page, is_on=False)
    page.get_by_label("Speed").select_option("0.5")
    for act in (
        lambda: page.keyboard.press("p"),
        lambda: page.get_by_role("button", name="Back").click(),
        lambda: page.get_by_role("button", name="Another").click(),
        lambda: page.get_by_label("Words").press("a"),
    ):
        page.get_by_role("button", name="Back").focus()
        page.keyboard.press("p")
        plays(page)
        act()
        plays(page, is_on=False)
    page = open_demo("player", "grows", moves=True).page  # to where no more steps are made
    page.get_by_label("Speed").select_option("4")
    page.keyboard.press("p")
    expect(page.get_by_text(f"seen {[*range(7)]}")).to_be_visible()
    expect(page.locator(".where")).to_have_text("Step: 6 of 6")
    plays(page, is_on=False)
    visitor = open_demo("stage_list", moves=True)  # the stages of a pass are played as well
    page.get_by_label("Speed").select_option("4")
    page.get_by_role("button", name="Layer 1").click()
    told(visitor, "(5,), run 2")
    page.keyboard.press("p")
    plays(page)
    told(visitor, "(8,), run 5")
    plays(page, is_on=False)
    expect(page.locator(".stage_list [aria-current=step]")).to_have_text("Logits")
