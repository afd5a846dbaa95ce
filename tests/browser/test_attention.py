"""Attention maps by hand: pointed at, pinned, walked with the keys, adjusted, drawn as lines."""

import re

from playwright.sync_api import WebSocket, expect

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
    """Open the display options."""
    visitor.rest()
    visitor.widget("adjust").get_by_role("button").first.click()
    expect(visitor.widget("hide_first")).to_be_visible()


def take(visitor: Visitor, key: str, name: str) -> None:
    visitor.widget(key).get_by_role("radio", name=name, exact=True).click()
    visitor.asks(**{key: name})


def sized(visitor: Visitor, key: str, rows: int | str, columns: int | str) -> None:
    """Wait until the view has so many rows and columns."""
    label = re.compile(rf"(, |^){rows}( layers)? by {columns}\b")
    expect(visitor.widget(key).locator("canvas").first).to_have_attribute("aria-label", label)


def test_pointing_asks_nobody_and_a_head_is_chosen_by_one_message_or_by_keys(
    visitor: Visitor,
) -> None:
    sent: list[object] = []

    def count(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: sent.append(frame))

    visitor.page.on("websocket", count)
    page = visitor.open(OURS)
    sized(visitor, GRID, 2, 4)
    before = visitor.picture(HEAD)
    opened = len(sent)
    assert opened, "the page was never served"

    cells = [(0, 0), (2, 1), (3, 3), (4, 2)]
    said = {visitor.point(HEAD, *cell).inner_text() for cell in cells}
    visitor.away()
    assert len(said) == 4, "every cell says what it holds"
    assert len(sent) == opened

    visitor.pick(GRID, layer=1, head=1)
    clicked = visitor.changed(HEAD, before)
    expect(page.get_by_text(re.compile("Layer 1, head 1$"))).to_be_visible()
    visitor.at_head(1, 1)
    visitor.rest()
    assert len(sent) == opened + 1
    page.remove_listener("websocket", count)

    visitor.widget(GRID).locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile("Layer 1, head 2$"))).to_be_visible()
    visitor.changed(HEAD, clicked)


def test_back_and_forward_change_the_large_head_with_the_bar(visitor: Visitor) -> None:
    page = visitor.open(OURS)
    usual = shown_head(visitor)
    for layer, head in ((1, 1), (0, 3), (1, 0)):
        visitor.pick(GRID, layer=layer, head=head)
        has_head(visitor, f"Layer {layer}, head {head}")
    for name in ("Layer 0, head 3", "Layer 1, head 1", usual):
        page.go_back()
        has_head(visitor, name)
    page.go_forward()
    has_head(visitor, "Layer 1, head 1")


def test_the_head_of_a_link_is_kept_on_the_way_to_other_pages(visitor: Visitor) -> None:
    for name in ("This head, step by step", "Masks"):
        page = visitor.open(OURS + "&layer=1&head=3")
        has_head(visitor, "Layer 1, head 3")
        page.get_by_role("link", name=name).click()
        visitor.titled("Head, step by step" if name.startswith("This") else name)
        visitor.rest()
        visitor.at_head(1, 3)


def shown_head(visitor: Visitor) -> str:
    title = visitor.page.get_by_text(re.compile(r"Layer \d+, head \d+$")).first.inner_text()
    return title.rpartition(" · ")[2]


def has_head(visitor: Visitor, name: str) -> None:
    """The title and the picture, the lists of the bar and the address agree."""
    expect(visitor.page.get_by_text(re.compile(f"{name}$")).first).to_be_visible()
    visitor.rest()
    visitor.at_head(*map(int, re.findall(r"\d+", name)))
    canvas = visitor.widget(HEAD).locator("canvas").first
    expect(canvas).to_have_attribute("aria-label", re.compile(f"{name}\\b"))


def test_a_cell_is_pinned_walked_unpinned_and_leads_to_its_query_and_key(visitor: Visitor) -> None:
    page = visitor.open(OURS + "&text=To+be,+or+not+to+be")
    visitor.click(HEAD, 2, 1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    visitor.asks(held="q3k0")
    page.get_by_role("link", name="Query and key of the pinned cell").click()
    visitor.titled("Query and key")
    visitor.rest()
    expect(visitor.widget("query").locator("input")).to_have_value(re.compile("^3 ·"))
    expect(visitor.widget("key").locator("input")).to_have_value(re.compile("^0 ·"))
    visitor.follow("Attention maps")
    expect(visitor.widget(HEAD).locator(".place")).to_have_text("query 3, key 0")
    visitor.widget(HEAD).locator("canvas").focus()
    page.keyboard.press("Escape")
    wait_until(lambda: "held" not in visitor.query(), "nothing pinned in the address")
    visitor.other_view("view", "Tokens")
    visitor.drawn(TOKENS)
    visitor.widget(TOKENS).locator('.chip[data-at="2"]').first.click()
    visitor.asks(held="q2")


def test_the_display_of_a_head_is_adjusted_and_reset(visitor: Visitor) -> None:
    """Each control changes the picture; the number of a cell stays its weight."""
    page = visitor.open(PUBLISHED)
    plain = seen = visitor.picture(HEAD)
    value = visitor.point(HEAD, 2, 3).inner_text()
    visitor.away()
    adjust(visitor)
    legend = visitor.widget(HEAD).locator(".legend")
    take(visitor, "colours", "Row")
    expect(legend).to_contain_text("maximum of the row")
    seen = visitor.changed(HEAD, seen)
    page.keyboard.press("Escape")
    expect(visitor.point(HEAD, 2, 3)).to_have_text(value)
    visitor.away()
    adjust(visitor)
    for name, words in (
        ("Mean", "Layer 0, mean of 4 heads"),
        ("Max of all layers", "Maximum of the 4 heads of each of the 3 layers"),
    ):
        take(visitor, "heads", name)
        visitor.says(words)
        seen = visitor.changed(HEAD, seen)
    visitor.widget("mass").get_by_role("slider").press("ArrowLeft")
    visitor.asks(mass="95")
    visitor.says(re.compile(r"keys of each row that reach 95 % are shown, [\d.]+ on average"))
    visitor.widget("reset_look").get_by_role("button").click()
    visitor.shows(HEAD, plain)
    page.keyboard.press("Escape")
    for said in ("1 key hidden", "Raw attention weights"):
        visitor.click(HEAD, -0.7, 1)  # the label over a column
        visitor.says(said)
    visitor.fill("Second sentence", "a dog")
    adjust(visitor)
    take(visitor, "sentences", "A→B")
    visitor.says(re.compile("A→B: .* of the weight of these rows is on these columns"))
    sized(visitor, HEAD, 6, 3)


def test_a_wrong_view_is_said_under_its_buttons_and_no_room_is_left_under_the_overview(
    visitor: Visitor,
) -> None:
    page = visitor.open(OURS + "&view=Foo")
    visitor.drawn(HEAD)
    visitor.drawn(GRID)
    buttons = page.get_by_role("radiogroup", name="View").bounding_box()
    said = page.get_by_text("“View” has no “Foo” here; showing Matrix.").bounding_box()
    assert buttons is not None
    assert said is not None
    assert said["y"] >= buttons["y"] + buttons["height"]
    empty = """grid => grid.getBoundingClientRect().bottom
      - grid.querySelector(".notes").getBoundingClientRect().bottom"""
    assert visitor.widget(GRID).locator(".grid").evaluate(empty) < 24


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
        expect(page.get_by_text(re.compile("Layer 1, head 1$"))).to_be_visible()
        visitor.changed(HEAD, before)
    visitor.turn_to("Lines")
    named = re.compile(rf"lines from {longest} query tokens to {longest} key tokens")
    expect(visitor.widget(LINES).locator("canvas").first).to_have_attribute("aria-label", named)


def test_clicks_quicker_than_the_app_answers_lose_nothing(visitor: Visitor) -> None:
    page, views = visitor.open(OURS), ("Matrix", "Lines", "Tokens")
    visitor.drawn()
    page.evaluate(ALL_AT_ONCE, [views, 60])
    visitor.rest()
    visitor.asks(view=views[59 % 3])
    expect(page.get_by_test_id("stApp")).to_have_attribute(
        "data-test-connection-state", "CONNECTED"
    )
