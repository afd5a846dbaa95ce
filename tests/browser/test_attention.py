"""Heads by hand: pointed at, pinned, adjusted, taken along, by steps, ranked and followed."""

import re
from pathlib import Path
from xml.etree import ElementTree

from playwright.sync_api import Locator, expect

from tests.browser.visiting import Visitor, box_of
from tests.served import wait_until

HEAD, GRID = "attention_head", "overview"
OURS = "/attention?model=shakespeare&layer=0&head=0"
UNNAMED = {"layer": "1", "head": "0"}
"""The first head that this model shows, which no address names."""
ON, LATER = re.compile(r"\bon\b"), re.compile("later")
ALL_AT_ONCE = """async ([names, clicks]) => {
  for (let click = 0; click < clicks; click++) {
    const options = [...document.querySelectorAll('[data-testid="stMain"] [role="radio"]')];
    options.find((option) => option.innerText.trim() === names[click % names.length]).click();
    await new Promise(requestAnimationFrame);
  }
}"""
ROOM_BELOW = """grid => grid.getBoundingClientRect().bottom
  - grid.querySelector(".notes").getBoundingClientRect().bottom"""


def adjust(visitor: Visitor, key: str, name: str) -> None:
    """Choose this among the display options."""
    visitor.until_run(visitor.widget("adjust").get_by_role("button").first.click)
    visitor.settled()  # what moves under the pointer is not clicked
    visitor.widget(key).get_by_role("radio", name=name, exact=True).click()
    visitor.asks(**{key: name})


def sized(visitor: Visitor, key: str, rows: int | str, columns: int | str) -> None:
    """Wait until the view has so many rows and columns."""
    label = re.compile(rf"(, |^){rows}( layers)? by {columns}\b")
    expect(visitor.widget(key).locator("canvas").first).to_have_attribute("aria-label", label)


def has_head(visitor: Visitor, layer: int, head: int) -> None:
    """The title and the picture, the lists of the bar and the address agree."""
    name = f"Layer {layer}, head {head}"
    expect(visitor.page.get_by_text(re.compile(f"{name}$")).first).to_be_visible()
    visitor.at_head(layer, head)
    chosen = {"layer": str(layer), "head": str(head)}.items()
    wait_until(lambda: (UNNAMED | visitor.query()).items() >= chosen, f"{name} in the address")
    canvas = visitor.widget(HEAD).locator("canvas").first
    expect(canvas).to_have_attribute("aria-label", re.compile(f"{name}\\b"))


def test_pointing_asks_nobody_and_a_head_is_one_message_and_one_step_back(visitor: Visitor) -> None:
    page = visitor.open(OURS)
    sized(visitor, GRID, 2, 4)
    before = visitor.picture(HEAD)
    visitor.has_everything()
    sent: list[object] = []
    visitor.socket.on("framesent", lambda frame: sent.append(frame))
    cells = [(0, 0), (2, 1), (3, 3), (4, 2)]
    assert len({visitor.point(HEAD, *cell).inner_text() for cell in cells}) == 4
    visitor.away()
    assert not sent
    visitor.pick(GRID, layer=1, head=1)
    clicked = visitor.changed(HEAD, before)
    has_head(visitor, 1, 1)
    assert len(sent) == 1

    visitor.widget(GRID).locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    has_head(visitor, 1, 2)
    visitor.changed(HEAD, clicked)
    visitor.pick(GRID, layer=0, head=3)
    has_head(visitor, 0, 3)
    for head in ((1, 2), (1, 1), (0, 0)):
        page.go_back()
        has_head(visitor, *head)
    page.go_forward()
    has_head(visitor, 1, 1)
    for name, title in (("This head, step by step", "Head, step by step"), ("Masks", "Masks")):
        page.get_by_role("link", name=name).click()
        visitor.titled(title)
        visitor.rest()
        visitor.at_head(1, 1)
        visitor.follow("Attention maps")


def test_the_display_of_a_head_is_adjusted_and_reset(visitor: Visitor) -> None:
    """Each control changes the picture; the number of a cell stays its weight."""
    page = visitor.open("/attention?model=bert&layer=0&head=0&text=the+capital+of+france")
    plain = visitor.picture(HEAD)
    value = visitor.point(HEAD, 2, 3).inner_text()
    visitor.away()
    adjust(visitor, "colours", "Row")
    expect(visitor.widget(HEAD).locator(".legend")).to_contain_text("maximum of the row")
    seen = visitor.changed(HEAD, plain)
    page.keyboard.press("Escape")
    expect(visitor.point(HEAD, 2, 3)).to_have_text(value)
    visitor.away()
    adjust(visitor, "heads", "Max of all layers")
    visitor.changed(HEAD, seen)
    visitor.widget("mass").get_by_role("slider").press("ArrowLeft")
    visitor.asks(mass="95")
    visitor.says(re.compile(r"keys of each row that reach 95 % are shown, [\d.]+ on average"))
    visitor.widget("reset_look").get_by_role("button").click()
    visitor.shows(HEAD, plain)
    page.keyboard.press("Escape")
    for said in ("1 key hidden", "Raw attention weights"):
        visitor.click(HEAD, -0.7, 1)  # the label over a column
        visitor.says(said)


def test_quick_clicks_lose_nothing_and_a_wrong_view_is_said_below_it(visitor: Visitor) -> None:
    page, views = visitor.open(OURS + "&view=Foo"), ("Matrix", "Lines", "Tokens")
    visitor.drawn(HEAD)
    visitor.drawn(GRID)
    buttons = box_of(page.get_by_role("radiogroup", name="View"))
    said = box_of(page.get_by_text("“View” has no “Foo” here; showing Matrix."))
    assert said["y"] >= buttons["y"] + buttons["height"]
    assert visitor.widget(GRID).locator(".grid").evaluate(ROOM_BELOW) < 24
    page.evaluate(ALL_AT_ONCE, [views, 60])
    visitor.rest()
    expect(page.get_by_role("radio", name=views[59 % 3], exact=True)).to_be_checked()
    visitor.asks(view=views[59 % 3])
    connected = "data-test-connection-state", "CONNECTED"
    expect(page.get_by_test_id("stApp")).to_have_attribute(*connected)


def test_long_inputs_stay_usable(visitor: Visitor) -> None:
    """2,000 tokens of ours as a matrix; 512 in a published model of 144 heads as lines."""
    visitor.open("/attention?model=long&text=a&layer=0&head=0")
    visitor.type("a bc " * 400)
    sized(visitor, HEAD, r"2,?0\d\d", r"2,?0\d\d")
    visitor.rest()
    said = visitor.point(HEAD, 5, 2)
    expect(said).to_contain_text("attends to")
    first = said.inner_text()
    expect(visitor.point(HEAD, 400, 30)).not_to_have_text(first)
    before = visitor.picture(HEAD)
    visitor.pick(GRID, layer=1, head=1)
    visitor.changed(HEAD, before)
    visitor.open(f"/attention?model=long-gpt2&view=Lines&text={'abcdefgh+' * 60}")
    expect(visitor.widget("attention_lines").locator("canvas").first).to_have_attribute(
        "aria-label", re.compile(r"lines from 5\d\d query tokens to 5\d\d key tokens")
    )


def test_a_view_is_saved_as_pictures_numbers_and_an_offline_page(visitor: Visitor) -> None:
    """What stands in them is proven in tests/export and tests/pages/test_export.py."""
    page = visitor.open("/attention?model=translation&part=Cross&text=the+black+cat&head=1")
    visitor.drawn(HEAD)
    visitor.widget("export").get_by_role("button").first.click()
    contents = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "csv": b",1 black,"}
    contents |= {"json": b"the black cat", "npz": b"PK", "html": b"Content-Security-Policy"}
    for ending, content in (contents | {"screen": b"<svg"}).items():
        with page.expect_download() as download:
            visitor.widget(f"export_{ending}").get_by_role("button").click()
        assert ending in download.value.suggested_filename.rpartition("-")[2]
        assert content in Path(download.value.path()).read_bytes()
    drawn = [*ElementTree.parse(download.value.path()).iter()]
    assert {"the", "black", "cat", "</s>"} <= {each.text for each in drawn}, "labels are texts"
    assert not [each.tag for each in drawn if "script" in each.tag]


def panel(visitor: Visitor, of: str) -> Locator:
    return visitor.widget("stages").locator(f'.panel[data-of="{of}"]')


def number(visitor: Visitor, of: str) -> Locator:
    """What a panel says of the cell."""
    return panel(visitor, of).locator(".now")


def cells_of(visitor: Visitor, of: str) -> list[float]:
    """Where the cells of a panel begin, and how large they are."""
    return [*map(float, str(panel(visitor, of).get_attribute("data-cells")).split())]


def test_the_stages_of_a_head_follow_the_keys_the_pointer_the_equation(visitor: Visitor) -> None:
    text = "To+be,+or+not+to+be&up_to=values"
    page = visitor.open(f"/head_steps?model=shakespeare&layer=1&head=1&text={text}&pinned=q5k2")
    visitor.drawn("stages")
    view = visitor.widget("stages")
    # M, which is over queries and keys, begins as high as the vectors of either.
    assert len({cells_of(visitor, of)[1] for of in ("q", "k", "added", "v", "out")}) == 1
    weight = number(visitor, "weights").inner_text()
    panel(visitor, "dots").locator("canvas").focus()
    page.keyboard.press("ArrowLeft")
    visitor.asks(pinned="q5k1")
    expect(number(visitor, "weights")).not_to_have_text(weight)
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    visitor.asks(pinned="q5k7")
    for of, said in (("added", "−∞"), ("logits", "−∞"), ("weights", "0")):
        expect(number(visitor, of)).to_have_text(said)
    expect(view.locator(".sentence")).to_contain_text("is masked for")
    left, top, wide, high = cells_of(visitor, "q")
    at = {"x": left + 3.5 * wide, "y": top + 5.5 * high}
    panel(visitor, "q").locator("canvas").hover(position=at)  # type: ignore[arg-type]
    for of in ("q", "k"):
        expect(number(visitor, of)).to_contain_text("[3] ")

    symbols = view.locator(".equation")
    for of, said in (("q", "Q: 32 dimensions"), ("added", "M: 0 where"), ("v", "V: the")):
        symbols.locator(f'[data-of="{of}"]').last.hover()
        expect(panel(visitor, of)).to_have_class(ON)
        expect(panel(visitor, "weights")).to_have_class(re.compile("aside"))
        expect(view.locator(".about")).to_contain_text(said)
    for of in ("weights", "k", "out"):
        panel(visitor, of).locator("canvas").hover()
        expect(symbols.locator(f'[data-of="{of}"]').last).to_have_class(ON)
    page.get_by_role("radio", name="scaled", exact=True).click()
    visitor.asks(up_to="scaled")
    for of in ("logits", "weights", "v", "out"):
        expect(panel(visitor, of)).to_have_class(LATER)
        expect(number(visitor, of)).to_have_text("")
    for of in ("dots", "scaled"):
        expect(panel(visitor, of)).not_to_have_class(LATER)
    page.get_by_role("radio", name="softmax", exact=True).click()
    visitor.asks(up_to="softmax")
    expect(panel(visitor, "weights")).not_to_have_class(LATER)
    expect(panel(visitor, "out")).to_have_class(LATER)


def test_heads_are_ranked_arranged_and_followed_through_the_layers(visitor: Visitor) -> None:
    page = visitor.open("/heads?model=induction&text=xyzwxyzwxy")
    visitor.choose("Metric", "Induction score")
    expect(page.get_by_text("Induction score of every head", exact=True)).to_be_visible()
    visitor.drawn("best_heads")
    third = visitor.widget("best_heads").get_by_role("button").nth(2)
    third.click()
    expect(third).to_have_attribute("aria-pressed", "true")
    visitor.click("heads_table", 0, 1)
    expect(page.get_by_text(re.compile("Layer 0, head 1$"))).to_be_visible()
    visitor.follow("Logit lens")
    visitor.click("made_of", 0, 0)
    expect(visitor.widget("head").get_by_role("combobox")).to_have_value("0")

    visitor.open("/heads?model=bert&side=Similarity&layer=0&head=0&text=the+capital+of+france")
    visitor.click("similarity", 11, 0)
    visitor.asks(head="3")
    visitor.rest()
    visitor.away()
    before = visitor.picture("similarity")
    visitor.turn_to("By similarity")
    visitor.asks(arranged="By similarity")
    visitor.changed("similarity", before)
    visitor.choose("View", "Flow")
    visitor.away()
    before = visitor.picture("flow")
    visitor.choose("Token", "1 ")
    wait_until(lambda: visitor.query().get("flow_to", "").startswith("1"), "the token's address")
    visitor.changed("flow", before)
