"""One head, large, looked at in every way, by hand: on a model of ours and on a published one."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Position, expect

from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import wait_until

HEAD = "attention_head"
LINES = "attention_lines"
OURS = "/attention?model=shakespeare"
PUBLISHED = "/attention?model=bert&text=the+capital+of+france"
PAIR = PUBLISHED + "&pair=a+dog"
BOTH = pytest.mark.parametrize("address", [OURS, PUBLISHED], ids=["ours", "published"])


def adjust(visitor: Visitor) -> None:
    """Open the controls, where they are closed."""
    visitor.rest()
    visitor.widget("adjust").get_by_role("button").first.click()
    expect(visitor.widget("hide_first")).to_be_visible()


def switch(visitor: Visitor, key: str) -> None:
    visitor.widget(key).locator("label").first.click()
    visitor.asks(**{key: "true"})


def take(visitor: Visitor, key: str, name: str) -> None:
    visitor.widget(key).get_by_role("radio", name=name, exact=True).click()
    visitor.asks(**{key: name})


def place(visitor: Visitor, row: float, column: float) -> Position:
    """The middle of a cell of the large head; row -0.8 is the label of the column."""
    visitor.drawn(HEAD)
    view = visitor.widget(HEAD).locator("[data-cells]")
    left, band, cell = map(float, str(view.get_attribute("data-cells")).split())
    return Position(x=left + (column + 0.5) * cell, y=band + (row + 0.5) * cell)


def canvas(visitor: Visitor) -> Locator:
    return visitor.widget(HEAD).locator("canvas")


def sentence(visitor: Visitor) -> Locator:
    return visitor.widget(HEAD).locator(".sentence")


def says(visitor: Visitor, words: str | re.Pattern[str]) -> None:
    expect(visitor.page.get_by_test_id("stMain").get_by_text(words).first).to_be_visible()


def changes(visitor: Visitor, before: str, key: str = HEAD) -> None:
    wait_until(lambda: visitor.picture(key) != before, "another picture")


@BOTH
def test_hide_sinks_and_renormalise_removed_mass_printed(
    visitor: Visitor, visit: Visit, address: str
) -> None:
    visitor.open(address)
    before = visitor.picture(HEAD)
    adjust(visitor)
    switch(visitor, "hide_first")
    says(visitor, re.compile(r"Hidden: 1 key, with \d+ % of the weight \(mean over rows\)"))
    changes(visitor, before)
    friend = visit()
    friend.page.goto(visitor.page.url)
    friend.rest()
    says(friend, "1 key hidden")
    assert visitor.query()["hide_first"] == "true"
    visitor.widget("reset_look").get_by_role("button").click()
    wait_until(lambda: visitor.picture(HEAD) == before, "the head as it was")


@BOTH
def test_a_click_on_a_key_hides_it_and_a_second_shows_it(visitor: Visitor, address: str) -> None:
    visitor.open(address)
    before = visitor.picture(HEAD)
    canvas(visitor).click(position=place(visitor, -0.8, 1))
    says(visitor, "1 key hidden")
    assert visitor.query()["hide"].startswith("1 ")
    canvas(visitor).hover(position=place(visitor, 2, 1))
    expect(sentence(visitor)).to_contain_text("is hidden")
    canvas(visitor).click(position=place(visitor, -0.8, 1))
    says(visitor, "The head as the pass left it")
    visitor.page.mouse.move(5, 5)
    wait_until(lambda: visitor.picture(HEAD) == before, "the head as it was")


@BOTH
def test_mean_and_max_of_heads(visitor: Visitor, address: str) -> None:
    visitor.open(address)
    before = visitor.picture(HEAD)
    adjust(visitor)
    take(visitor, "heads", "Mean")
    says(visitor, "Layer 0, mean of 4 heads")
    changes(visitor, before)
    mean = visitor.picture(HEAD)
    take(visitor, "heads", "Max")
    says(visitor, "In each cell the largest of the 4 heads")
    changes(visitor, mean)
    largest = visitor.picture(HEAD)
    take(visitor, "heads", "Mean of all layers")
    says(visitor, re.compile(r"All \d layers, mean of (8|12) heads"))
    changes(visitor, largest)
    take(visitor, "heads", "Max of all layers")
    says(visitor, re.compile(r"In each cell the largest of the 4 heads of each of the \d layers"))
    visitor.page.keyboard.press("Escape")
    visitor.pick("overview", layer=1, head=3)
    expect(visitor.page.get_by_text("Layer 1, head 3", exact=True)).to_be_visible()
    wait_until(lambda: "heads" not in visitor.query(), "the head itself in the address")


@BOTH
def test_mass_cut_keeps_the_fewest_keys(visitor: Visitor, address: str) -> None:
    visitor.open(address + "&mass=75")
    adjust(visitor)
    slider = visitor.widget("mass").get_by_role("slider")
    slider.press("ArrowLeft")
    visitor.asks(mass="70")
    says(visitor, re.compile(r"fewest keys that reach 70 % of it are shown, [\d.]+ on average"))
    says(visitor, "70 % of each row")


def test_scaling_choice_by_row_column_or_picture_linear_or_log(visitor: Visitor) -> None:
    visitor.open(PUBLISHED)
    seen = [visitor.picture(HEAD)]
    legend = visitor.widget(HEAD).locator(".legend")
    expect(legend).to_contain_text("1.00")
    canvas(visitor).hover(position=place(visitor, 2, 3))
    value = sentence(visitor).inner_text()
    visitor.page.mouse.move(5, 5)
    adjust(visitor)
    for name, words in (("Row", "largest of its row"), ("Column", "largest of its column")):
        take(visitor, "colours", name)
        expect(legend).to_contain_text(words)
        changes(visitor, seen[-1])
        seen.append(visitor.picture(HEAD))
    switch(visitor, "log")
    expect(legend).to_contain_text("weight, log")
    changes(visitor, seen[-1])
    visitor.page.keyboard.press("Escape")
    canvas(visitor).hover(position=place(visitor, 2, 3))
    expect(sentence(visitor)).to_have_text(value)


@BOTH
def test_value_norm_weighting(visitor: Visitor, address: str) -> None:
    visitor.open(address)
    adjust(visitor)
    take(visitor, "weighting", "Value length")
    says(visitor, re.compile("slice of the output projection .Kobayashi et al. 2020"))
    expect(visitor.widget(HEAD).locator(".legend")).to_contain_text("weight × ‖value‖")


def test_merge_subwords_to_words(visitor: Visitor) -> None:
    visitor.open(OURS)
    adjust(visitor)
    switch(visitor, "words")
    says(visitor, re.compile(r"Words: 15 tokens down are 13 words, 15 across are 13"))
    canvas(visitor).hover(position=place(visitor, 12, 12))
    expect(sentence(visitor)).to_contain_text("question attends to ␣question")
    visitor.open(PUBLISHED)
    adjust(visitor)
    expect(visitor.widget("words").locator("input")).to_be_disabled()


def test_words_of_a_published_tokenizer_are_merged(visitor: Visitor) -> None:
    visitor.open("/attention?model=bert&text=the+sales&words=true")
    says(visitor, re.compile("Words: . tokens down are 4 words"))


def test_sentence_pair_filter(visitor: Visitor) -> None:
    visitor.open(PAIR)
    adjust(visitor)
    take(visitor, "sentences", "A→B")
    says(visitor, re.compile("A→B: .* of what these rows give goes to these columns"))
    label = canvas(visitor)
    expect(label).to_have_attribute("aria-label", re.compile("6 by 3"))
    visitor.page.get_by_label("Second sentence", exact=True).fill("")
    visitor.page.get_by_label("Second sentence", exact=True).press("Enter")
    expect(label).to_have_attribute("aria-label", re.compile("6 by 6"))


@BOTH
def test_hover_value_lock_direction(visitor: Visitor, address: str) -> None:
    visitor.open(address)
    canvas(visitor).click(position=place(visitor, 2, 1))
    held = sentence(visitor).inner_text()
    assert "attends to" in held
    canvas(visitor).hover(position=place(visitor, 3, 1))
    expect(sentence(visitor)).not_to_have_text(held)
    visitor.page.mouse.move(5, 5)
    expect(sentence(visitor)).to_contain_text(held)
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("ArrowLeft")
    expect(sentence(visitor)).to_contain_text("attends to")
    expect(visitor.widget(HEAD).locator(".place")).to_have_text("query 3, key 0")
    visitor.page.keyboard.press("Escape")
    expect(sentence(visitor)).to_have_class("sentence idle")


@BOTH
def test_line_view_of_any_subset_of_heads_takes_the_same_look(
    visitor: Visitor, address: str
) -> None:
    visitor.open(address + "&view=Lines&layer=0&head=0")
    visitor.drawn(LINES)
    chips = visitor.widget(LINES).get_by_role("button")
    expect(chips).to_have_count(4)
    before = visitor.picture(LINES)
    chips.nth(2).click()
    expect(chips.nth(2)).to_have_attribute("aria-pressed", "true")
    changes(visitor, before, LINES)
    two = visitor.picture(LINES)
    adjust(visitor)
    switch(visitor, "hide_first")
    changes(visitor, two, LINES)
    expect(chips.nth(2)).to_have_attribute("aria-pressed", "true")
    take(visitor, "heads", "Mean")
    expect(chips).to_have_count(1)
    expect(chips).to_have_text("mean of 4 heads")


def test_a_bad_value_in_the_address_is_said_and_replaced(visitor: Visitor) -> None:
    visitor.open(PUBLISHED + "&heads=banana&mass=7&hide=99+x")
    says(
        visitor,
        "“heads” can be This head, Mean, Max, Mean of all layers or Max of all layers, "
        "not “banana”; showing This head.",
    )
    says(visitor, "There is no key “99 x” to hide in this text.")
    wait_until(lambda: not {"heads", "mass", "hide"} & set(visitor.query()), "a clean address")
    adjust(visitor)
    switch(visitor, "log")
    expect(visitor.page.get_by_text("“banana”")).to_have_count(0)
