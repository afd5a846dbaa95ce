"""The museum by hand: a mistake switched off and on, one found, two trainings, a system opened."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from explorer.bench import museum_finding
from explorer.museum.exhibits import EXHIBITS, FINDABLE
from tests.browser.visiting import Visitor

ADDRESS = "/museum?model=translation&text=the+black+cat+sleeps"
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


def test_a_mistake_is_switched_off_and_the_next_exhibit_visited(visitor: Visitor) -> None:
    page = visitor.open(ADDRESS)
    visitor.choose("Exhibit", EXHIBITS[4].label)
    visitor.says(re.compile("What gives it away: Swapped slices, .* against"))
    visitor.rest()
    broken = visitor.picture("museum_wrong")
    page.get_by_text("Make the mistake").click()
    visitor.says("The mistake is not made")
    visitor.asks(mistake="false")
    mended = visitor.changed("museum_wrong", broken)
    visitor.shows("museum_right", mended)
    page.reload()
    visitor.says("The mistake is not made")
    for exhibit in (EXHIBITS[1], EXHIBITS[-1]):
        visitor.choose("Exhibit", exhibit.label)
        visitor.asks(exhibit=exhibit.label)
        visitor.says(exhibit.right[:40])


def test_find_it(visitor: Visitor) -> None:
    """Look through two instruments and answer; then err, and err again."""
    hidden = museum_finding.order(list(FINDABLE), 7)
    page = visitor.open(f"{ADDRESS}&room=Find+it&order=7")
    for name in ("Writing", hidden[0].sign):
        visitor.turn_to(name)
        visitor.asks(instrument=name)
        visitor.says("As it should be: ")
    expect(page.get_by_text("What gives it away:")).to_have_count(0)
    visitor.choose("Which mistake is it?", hidden[0].title)
    visitor.press("Answer")
    visitor.says("Found.")
    visitor.says(f"What gives it away: {hidden[0].sign}, ")
    visitor.says("Found so far: 1 of 1.")
    page.get_by_role("button", name="Next run").click()
    visitor.asks(question="2", order="7")
    for guess, said in ((2, "You have a second try"), (3, "Not that one either.")):
        visitor.choose("Which mistake is it?", hidden[guess].title)
        visitor.press("Answer")
        visitor.says(said)
    visitor.says("Found so far: 1 of 2.")


def test_two_trainings_are_shown_and_stopped(visitor: Visitor) -> None:
    """Stopped by the page itself at the first step it shows: a hand might come too late."""
    page = visitor.open("/museum?model=negation")
    visitor.choose("Exhibit", EXHIBITS[11].label)
    visitor.rest()
    page.evaluate(STOP_AT_ONCE)
    page.get_by_role("button", name="Train both").click()
    expect(page.get_by_role("button", name="Train both again")).to_be_visible()
    step = page.get_by_text(re.compile(r"^Accuracy at step \d+:")).inner_text()
    assert int(re.findall(r"\d+", step)[0]) < 60
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()


def test_a_system_is_opened_untrained_and_one_like_it_is_to_be_trained(visitor: Visitor) -> None:
    page = visitor.open("/museum?room=The+systems")
    visitor.turn_to("web tutorial, classifier")
    visitor.says("389,218 parameters.")
    visitor.press("Open it untrained")
    visitor.says("web-tutorial-classifier is open and reads")
    expect(page.get_by_test_id("stSidebar").get_by_text("untrained")).to_be_visible()
    visitor.widget("system_open").get_by_role("link", name="At a glance").click()
    visitor.titled("At a glance")
    visitor.drawn()
    visitor.follow("Museum")
    visitor.turn_to("The systems")
    visitor.turn_to("web tutorial, classifier")
    page.get_by_role("button", name="Train one like it: negation").click()
    visitor.titled("Train")
    visitor.rest()
    expect(page.get_by_role("combobox", name="Task")).to_have_value("negation")
    page.get_by_text("Model · encoder").click()
    built = page.get_by_role("combobox", name="Built like")
    expect(built).to_have_value("web tutorial, classifier")
    expect(page.get_by_label("d_model", exact=True)).to_have_value("64")
