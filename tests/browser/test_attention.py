"""The Attention page by hand: pointed at, held, walked with the keys, adjusted, drawn as lines."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Position, expect

from tests.browser.visiting import Visitor
from tests.served import wait_until

HEAD, GRID = "attention_head", "overview"
LINES, TOKENS = "attention_lines", "attention_tokens"
OURS = "/attention?model=shakespeare&layer=0&head=0"
PUBLISHED = "/attention?model=bert&layer=0&head=0&text=the+capital+of+france"
ALL_AT_ONCE = """async ([names, clicks]) => {
  for (let click = 0; click < clicks; click++) {
    const options = [...document.querySelectorAll('[data-testid="stMain"] [role="radio"]')];
    options.find((option) => option.innerText.trim() === names[click % names.length])?.click();
    await new Promise(requestAnimationFrame);
  }
}"""


def adjust(visitor: Visitor) -> None:
    """Open the controls of the look."""
    visitor.rest()
    visitor.widget("adjust").get_by_role("button").first.click()
    expect(visitor.widget("hide_first")).to_be_visible()


def switch(visitor: Visitor, key: str) -> None:
    visitor.widget(key).locator("label").first.click()
    visitor.asks(**{key: "true"})


def take(visitor: Visitor, key: str, name: str) -> None:
    visitor.widget(key).get_by_role("radio", name=name, exact=True).click()
    usual = name == "This head"  # which the address need not say
    wait_until(lambda: visitor.query().get(key) == (None if usual else name), f"{key}: {name}")


def sized(visitor: Visitor, key: str, rows: int | str, columns: int | str) -> None:
    """Wait until the view has so many rows and columns."""
    label = re.compile(rf"(, |^){rows}( layers)? by {columns}\b")
    expect(visitor.widget(key).locator("canvas").first).to_have_attribute("aria-label", label)


def test_a_head_is_chosen_in_the_overview_by_click_and_by_keys(visitor: Visitor) -> None:
    page = visitor.open(OURS)
    sized(visitor, GRID, 2, 4)
    before = visitor.picture(HEAD)
    visitor.pick(GRID, layer=1, head=1)
    expect(page.get_by_text("Layer 1, head 1", exact=True)).to_be_visible()
    visitor.asks(layer="1", head="1")
    clicked = visitor.changed(HEAD, before)
    visitor.rest()
    visitor.widget(GRID).locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Layer 1, head 2", exact=True)).to_be_visible()
    visitor.changed(HEAD, clicked)


def test_a_cell_is_held_walked_let_go_and_leads_to_its_query_and_key(visitor: Visitor) -> None:
    page = visitor.open(OURS + "&text=To+be,+or+not+to+be")
    visitor.click(HEAD, 2, 1)
    held = visitor.widget(HEAD).locator(".sentence").inner_text()
    assert "attends to" in held
    expect(visitor.point(HEAD, 3, 1)).not_to_have_text(held)
    visitor.away()
    expect(visitor.widget(HEAD).locator(".sentence")).to_contain_text(held)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    place = visitor.widget(HEAD).locator(".place")
    expect(place).to_have_text("query 3, key 0")
    visitor.asks(held="q3k0")
    page.get_by_role("link", name="Query and key of the held cell").click()
    visitor.titled("Query and key")
    visitor.rest()
    expect(visitor.widget("query").locator("input")).to_have_value(re.compile("^3 ·"))
    expect(visitor.widget("key").locator("input")).to_have_value(re.compile("^0 ·"))
    visitor.follow("Attention")
    expect(place).to_have_text("query 3, key 0")
    visitor.widget(HEAD).locator("canvas").focus()
    page.keyboard.press("Escape")
    wait_until(lambda: "held" not in visitor.query(), "nothing held in the address")


def test_lines_are_drawn_of_any_heads_and_take_the_same_look(visitor: Visitor) -> None:
    page = visitor.open(OURS + "&view=Lines")
    before = visitor.picture(LINES)
    chips = visitor.widget(LINES).get_by_role("button")
    expect(chips).to_have_count(4)
    chips.nth(2).click()
    expect(chips.nth(2)).to_have_attribute("aria-pressed", "true")
    visitor.asks(drawn="0.2")
    two = visitor.changed(LINES, before)
    visitor.widget(LINES).locator(".stage").click(position=Position(x=20, y=24 * 2 + 12))
    visitor.asks(held="q2")
    expect(visitor.widget(LINES).locator(".sentence")).to_contain_text("attends most to")
    page.keyboard.press("Escape")
    adjust(visitor)
    switch(visitor, "hide_first")
    visitor.changed(LINES, two)
    expect(chips.nth(2)).to_have_attribute("aria-pressed", "true")
    take(visitor, "heads", "Mean")
    expect(chips).to_have_count(1)
    expect(chips).to_have_text("mean of 4 heads")
    take(visitor, "heads", "This head")
    page.keyboard.press("Escape")
    visitor.pick(GRID, layer=1, head=1)
    visitor.asks(layer="1", head="1", view="Lines")
    wait_until(lambda: "drawn" not in visitor.query(), "another head is drawn alone")


@pytest.mark.parametrize("model", ["shakespeare", "translation"])
def test_a_token_says_whom_it_looks_at_and_who_looks_at_it(visitor: Visitor, model: str) -> None:
    part = "Cross" if model == "translation" else "Decoder"
    page = visitor.open(f"/attention?model={model}&part={part}&view=Tokens&layer=0&head=1")
    visitor.drawn(TOKENS)
    above, below, sentence = (
        visitor.widget(TOKENS).locator(part)
        for part in (".above .said", ".below .said", ".sentence")
    )

    def chip(at: int, side: int = 0) -> Locator:
        return visitor.widget(TOKENS).locator(f'.chip[data-side="{side}"][data-at="{at}"]')

    chip(2).hover()
    expect(above).to_contain_text("looks at")
    expect(above.locator(".value").first).to_contain_text(re.compile(r"[01]\.\d"))
    if model == "translation":  # two texts: a token of one side only looks, of the other is seen
        expect(below).to_have_text("")
        chip(1, side=1).hover()
        expect(below).to_contain_text("looked at by")
        return
    expect(below).to_contain_text("looked at by")
    expect(sentence).to_contain_text("is token 2 of")
    chip(2).click()
    visitor.away()
    expect(sentence).to_contain_text("held, Esc lets go")
    page.keyboard.press("ArrowRight")
    expect(sentence).to_contain_text("is token 3 of")
    visitor.asks(held="q3", view="Tokens")
    page.keyboard.press("Escape")
    expect(sentence).to_contain_text("Point at a token")


def test_keys_are_hidden_and_what_they_weighed_is_said(visitor: Visitor) -> None:
    visitor.open(OURS)
    before = visitor.picture(HEAD)
    adjust(visitor)
    switch(visitor, "hide_first")
    visitor.says(re.compile(r"Hidden: 1 key, with \d+ % of the weight \(mean over rows\)"))
    visitor.changed(HEAD, before)
    visitor.widget("reset_look").get_by_role("button").click()
    visitor.shows(HEAD, before)
    visitor.page.keyboard.press("Escape")
    visitor.click(HEAD, -0.8 - 0.5, 1)  # the label over a column
    visitor.says("1 key hidden")
    assert visitor.query()["hide"].startswith("1 ")
    expect(visitor.point(HEAD, 2, 1)).to_contain_text("is hidden")
    visitor.click(HEAD, -0.8 - 0.5, 1)
    visitor.says("The head as the pass left it")
    visitor.away()
    visitor.shows(HEAD, before)


def test_heads_are_pooled_and_weights_cut_scaled_and_weighed(visitor: Visitor) -> None:
    """Every control of the look, one after the other; the number of a cell stays its weight."""
    page = visitor.open(PUBLISHED)
    seen = visitor.picture(HEAD)
    value = visitor.point(HEAD, 2, 3).inner_text()
    visitor.away()
    adjust(visitor)
    legend = visitor.widget(HEAD).locator(".legend")
    for key, name, said in (
        ("colours", "Row", "largest of its row"),
        ("colours", "Column", "largest of its column"),
    ):
        take(visitor, key, name)
        expect(legend).to_contain_text(said)
        seen = visitor.changed(HEAD, seen)
    switch(visitor, "log")
    expect(legend).to_contain_text("weight, log")
    seen = visitor.changed(HEAD, seen)
    page.keyboard.press("Escape")
    expect(visitor.point(HEAD, 2, 3)).to_have_text(value)
    visitor.away()
    adjust(visitor)
    for name, words in (
        ("Mean", "Layer 0, mean of 4 heads"),
        ("Max", "In each cell the largest of the 4 heads"),
        ("Mean of all layers", "All 3 layers, mean of 12 heads"),
        ("Max of all layers", "In each cell the largest of the 4 heads of each of the 3 layers"),
    ):
        take(visitor, "heads", name)
        visitor.says(words)
        seen = visitor.changed(HEAD, seen)
    take(visitor, "heads", "This head")
    take(visitor, "weighting", "Value length")
    expect(legend).to_contain_text("weight × ‖value‖")
    slider = visitor.widget("mass").get_by_role("slider")
    slider.press("ArrowLeft")
    visitor.asks(mass="95")
    visitor.says(re.compile(r"fewest keys that reach 95 % of it are shown, [\d.]+ on average"))
    expect(visitor.widget("words").locator("input")).to_be_disabled()


def test_subwords_are_merged_and_a_pair_of_sentences_is_filtered(visitor: Visitor) -> None:
    visitor.open(OURS)
    adjust(visitor)
    switch(visitor, "words")
    visitor.says("Words: 15 tokens down are 13 words, 15 across are 13")
    expect(visitor.point(HEAD, 12, 12)).to_contain_text("question attends to ␣question")
    page = visitor.open(PUBLISHED)
    visitor.fill("Second sentence", "a dog")
    visitor.asks(pair="a dog")
    adjust(visitor)
    take(visitor, "sentences", "A→B")
    visitor.says(re.compile("A→B: .* of what these rows give goes to these columns"))
    sized(visitor, HEAD, 6, 3)
    page.keyboard.press("Escape")
    visitor.fill("Second sentence", "")
    sized(visitor, HEAD, 6, 6)


def test_long_inputs_stay_usable(visitor: Visitor) -> None:
    """2,000 tokens of ours; 512 in a published model of 144 heads, as lines too."""
    for model, text, longest in (
        ("long", "a bc " * 400, r"2,?0\d\d"),
        ("long-gpt2", "abcdefgh " * 60, r"5\d\d"),
    ):
        page = visitor.open(f"/attention?model={model}&text=a&layer=0&head=0")
        visitor.type(text)
        sized(visitor, HEAD, longest, longest)
        visitor.rest()
        visitor.drawn(GRID)
        said = visitor.point(HEAD, 5, 2)
        expect(said).to_contain_text("attends to")
        first = said.inner_text()
        expect(visitor.point(HEAD, 400, 30)).not_to_have_text(first)
        before = visitor.picture(HEAD)
        visitor.pick(GRID, layer=1, head=1)
        expect(page.get_by_text("Layer 1, head 1", exact=True)).to_be_visible()
        visitor.changed(HEAD, before)
    visitor.turn_to("Lines")
    named = re.compile(rf"Lines from {longest} query tokens to {longest} key tokens")
    expect(visitor.widget(LINES).locator("canvas").first).to_have_attribute("aria-label", named)


def test_what_the_address_asks_in_vain_is_said_until_something_is_chosen(visitor: Visitor) -> None:
    page = visitor.open(PUBLISHED + "&heads=banana&mass=7&hide=99+x")
    visitor.says(
        "“heads” can be This head, Mean, Max, Mean of all layers or Max of all layers, "
        "not “banana”; showing This head."
    )
    visitor.says("There is no key “99 x” to hide in this text.")
    wait_until(lambda: not {"heads", "mass", "hide"} & set(visitor.query()), "a clean address")
    adjust(visitor)
    switch(visitor, "log")
    expect(page.get_by_text("“banana”")).to_have_count(0)


def test_clicks_quicker_than_the_app_answers_lose_nothing(visitor: Visitor) -> None:
    page, views = visitor.open(OURS), ("Matrix", "Lines", "Tokens")
    visitor.drawn()
    page.evaluate(ALL_AT_ONCE, [views, 60])
    visitor.rest()
    visitor.asks(view=views[59 % 3])
    expect(page.get_by_test_id("stApp")).to_have_attribute(
        "data-test-connection-state", "CONNECTED"
    )
