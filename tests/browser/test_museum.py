"""The museum by hand: a mistake switched off, and two trainings stopped."""

import re

from playwright.sync_api import expect

from explorer.views.museum.exhibits import EXHIBITS
from tests.browser.visiting import Visitor

STOP_AT_ONCE = """() => {
  const main = document.querySelector('[data-testid="stMain"]');
  new MutationObserver((_, observer) => {
    const buttons = [...main.querySelectorAll("button")];
    const stop = buttons.find(each => each.innerText.trim() === "Stop");
    if (!stop || !/Step \\d+ of 60/.test(main.innerText)) return;
    observer.disconnect();
    stop.click();
  }).observe(main, {childList: true, subtree: true, characterData: true});
}"""


def test_a_mistake_is_switched_off_and_two_trainings_are_shown_and_stopped(
    visitor: Visitor,
) -> None:
    """Stopped by the page itself at the first step it shows: a hand might come too late."""
    page = visitor.open("/museum?model=translation&text=the+black+cat+sleeps")
    visitor.choose("Exhibit", EXHIBITS[4].label)
    visitor.rest()
    broken = visitor.picture("museum_wrong")
    page.get_by_text("Make the mistake").click()
    visitor.changed("museum_wrong", broken)
    visitor.shows("museum_wrong", visitor.picture("museum_right"))
    visitor.asks(mistake="false")

    visitor.choose("Exhibit", EXHIBITS[11].label)
    visitor.rest()
    page.evaluate(STOP_AT_ONCE)
    page.get_by_role("button", name="Train both").click()
    expect(page.get_by_role("button", name="Train both again")).to_be_visible()
    step = page.get_by_text(re.compile(r"^Accuracy at step \d+:")).inner_text()
    assert int(re.findall(r"\d+", step)[0]) < 60
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
