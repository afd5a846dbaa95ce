"""Steps in a real browser: by hand, by key, and in time, each one drawn."""

from playwright.sync_api import Page, expect

from tests.components.conftest import OpenDemo


def moving(open_demo: OpenDemo, name: str = "player", show: str = "") -> Page:
    """A demo in a browser that asks for no less motion."""
    page = open_demo(name, show).page
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_label("Speed").select_option("4")
    return page


def plays(page: Page, is_on: bool = True) -> None:
    expect(
        page.get_by_role("button", name="Pause" if is_on else "Play", exact=True)
    ).to_be_visible()


def test_buttons_keys_and_the_slider_step(open_demo: OpenDemo) -> None:
    page = open_demo("player").page
    where, place = page.locator(".where"), page.get_by_role("slider", name="Step")
    expect(page.get_by_role("button", name="Back")).to_be_disabled()
    page.get_by_role("button", name="Next").click()
    expect(where).to_have_text("Step: 1 of 4")
    expect(page.get_by_text("told (1,), run 2")).to_be_visible()
    for press, text in (("ArrowRight", "2"), ("ArrowRight", "3"), ("ArrowLeft", "2")):
        page.keyboard.press(press)
        expect(where).to_have_text(f"Step: {text} of 4")
        expect(page.get_by_text(f"told ({text},), run")).to_be_visible()
    words = page.get_by_label("Words")
    words.press("ArrowLeft")
    words.press("p")
    expect(words).to_have_value("p")
    expect(where).to_have_text("Step: 2 of 4")
    place.press("End")
    expect(page.get_by_text("told (4,), run")).to_be_visible()
    expect(place).to_have_attribute("aria-valuetext", "4 of 4")
    expect(page.get_by_role("button", name="Next")).to_be_disabled()


def test_who_asks_for_less_motion_steps_and_does_not_play(open_demo: OpenDemo) -> None:
    page = open_demo("player").page
    expect(page.get_by_role("button", name="Next")).to_be_visible()
    expect(page.locator(".player .play")).to_be_hidden()
    expect(page.get_by_label("Speed")).to_be_hidden()
    page.keyboard.press("p")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("told (1,), run 2")).to_be_visible()
    expect(page.locator(".player .playing")).to_have_count(0)


def test_playing_draws_every_step_and_ends_at_the_last(open_demo: OpenDemo) -> None:
    page = moving(open_demo)
    page.get_by_role("button", name="Play").click()
    plays(page)
    expect(page.get_by_text("seen [0, 1, 2, 3, 4]")).to_be_visible()
    plays(page, is_on=False)
    page.keyboard.press("p")
    expect(page.get_by_text("seen [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]")).to_be_visible()
    plays(page, is_on=False)


def test_playing_ends_with_any_other_action(open_demo: OpenDemo) -> None:
    page = moving(open_demo)
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


def test_steps_that_grow_are_played_to_where_no_more_are_made(open_demo: OpenDemo) -> None:
    page = moving(open_demo, show="grows")
    page.keyboard.press("p")
    expect(page.get_by_text(f"seen {[*range(10)]}")).to_be_visible()
    expect(page.locator(".where")).to_have_text("Step: 9 of 9")
    plays(page, is_on=False)


def test_the_stages_of_a_pass_are_played_as_well(open_demo: OpenDemo) -> None:
    page = moving(open_demo, "stage_list", "small")
    page.keyboard.press("p")
    plays(page)
    expect(page.get_by_text("told (8,), run 9")).to_be_visible()
    plays(page, is_on=False)
    expect(page.locator(".stage_list [aria-current=step]")).to_have_text("Logits")
