"""The museum by hand: every exhibit visited and recomputed, a mistake switched, one found."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from explorer import library, reading
from explorer.bench import museum_finding
from explorer.first_look import first_look
from explorer.museum.case import Case, case_of
from explorer.museum.exhibits import EXHIBITS, FINDABLE, Exhibit
from explorer.museum.instruments import INSTRUMENTS
from models.mistakes import MISTAKES
from tests.browser.visiting import Visitor
from tests.served import wait_until

TEXT = "the black cat sleeps"
ADDRESS = f"/museum?model=translation&text={TEXT.replace(' ', '+')}"
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
SIZES = {
    "lecture handout": "93,322,496",
    "notebook tutorial": "44,127,755",
    "web tutorial, encoder": "520,064",
    "web tutorial, classifier": "389,218",
    "paper": "93,322,496",
}


@pytest.fixture(scope="module")
def right() -> Case:
    """What the page computes, computed here: the shipped translator over the same sentence."""
    opened = library.open_model("translation")
    return case_of(opened, reading.read(opened, TEXT), first_look(opened))


def given_away(exhibit: Exhibit, right: Case) -> str:
    """The sentence on the number, from both models."""
    wrong = right.of(MISTAKES[exhibit.name].make(right.model))
    found = [INSTRUMENTS[exhibit.sign](case).short for case in (wrong, right)]
    return f"What gives it away: {exhibit.sign}, {found[0]} against {found[1]}."


def shows(page: Page, text: str) -> None:
    expect(page.get_by_test_id("stMain").get_by_text(text).first).to_be_visible()


def test_tutorials_mistakes_as_exhibits(visitor: Visitor, right: Case) -> None:
    """Visit all fourteen; the number of each is the one that is computed here."""
    page = visitor.open(ADDRESS)
    for exhibit in EXHIBITS:
        visitor.choose("Exhibit", exhibit.label)
        shows(page, exhibit.right[:40])
        if exhibit.sign:
            shows(page, given_away(exhibit, right))
        visitor.no_traceback()
    visitor.asks(exhibit=EXHIBITS[-1].label)


def test_a_mistake_is_switched_off_and_on(visitor: Visitor, right: Case) -> None:
    page = visitor.open(ADDRESS)
    visitor.choose("Exhibit", EXHIBITS[4].label)
    telling = given_away(EXHIBITS[4], right)
    shows(page, telling)
    visitor.rest()
    broken = visitor.picture("museum_wrong")
    page.get_by_text("Make the mistake").click()
    shows(page, "The mistake is not made")
    number = telling.rsplit(" ", 1)[1]
    shows(page, f"Swapped slices, {number.removesuffix('.')} against {number}")
    visitor.rest()
    wait_until(
        lambda: visitor.picture("museum_wrong") == visitor.picture("museum_right"),
        "two equal pictures",
    )
    assert visitor.picture("museum_wrong") != broken
    visitor.asks(mistake="false")
    page.reload()
    shows(page, "The mistake is not made")


def test_find_it(visitor: Visitor, right: Case) -> None:
    """Compare two instruments with what they should say, answer; then err, and err again."""
    hidden = museum_finding.order(list(FINDABLE), 7)
    page = visitor.open(f"{ADDRESS}&room=Find+it&order=7")
    wrong = right.of(MISTAKES[hidden[0].name].make(right.model))
    for name in ("Writing", hidden[0].sign):
        page.get_by_role("radio", name=name, exact=True).click()
        said = INSTRUMENTS[name](wrong).said
        shows(page, said[0].upper() + said[1:])
        shows(page, f"As it should be: {INSTRUMENTS[name](right).said}")
    expect(page.get_by_text("What gives it away:")).to_have_count(0)
    visitor.choose("Which mistake is it?", hidden[0].title)
    page.get_by_role("button", name="Answer", exact=True).click()
    shows(page, "Found.")
    shows(page, given_away(hidden[0], right))
    shows(page, "Found so far: 1 of 1.")
    page.get_by_role("button", name="Next run").click()
    visitor.asks(question="2", order="7")
    for guess, said in ((2, "You have a second try"), (3, "Not that one either.")):
        visitor.choose("Which mistake is it?", hidden[guess].title)
        page.get_by_role("button", name="Answer", exact=True).click()
        shows(page, said)
    shows(page, "Found so far: 1 of 2.")


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


def test_the_four_systems_are_opened_and_trained(visitor: Visitor) -> None:
    """Sizes before anything is made; one opened untrained and looked at; one to be trained."""
    page = visitor.open("/museum?room=The+systems")
    for name, count in SIZES.items():
        page.get_by_role("radio", name=name, exact=True).click()
        shows(page, f"{count} parameters.")
    page.get_by_role("radio", name="web tutorial, classifier", exact=True).click()
    page.get_by_role("button", name="Open it untrained").click()
    shows(page, "web-tutorial-classifier is open and reads")
    expect(page.get_by_test_id("stSidebar").get_by_text("untrained")).to_be_visible()
    visitor.widget("system_open").get_by_role("link", name="At a glance").click()
    visitor.titled("At a glance")
    visitor.drawn()
    visitor.no_traceback()
    visitor.follow("Museum")
    page.get_by_role("radio", name="The systems").click()
    page.get_by_role("radio", name="web tutorial, classifier", exact=True).click()
    page.get_by_role("button", name="Train one like it: negation").click()
    visitor.titled("Train")
    visitor.rest()
    expect(page.get_by_role("combobox", name="Task")).to_have_value("negation")
    page.get_by_text("Model · encoder").click()
    expect(page.get_by_role("combobox", name="Built like")).to_have_value(
        "web tutorial, classifier"
    )
    expect(page.get_by_label("d_model", exact=True)).to_have_value("64")
