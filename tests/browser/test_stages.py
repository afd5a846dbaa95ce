"""One head step by step, and one query and one key number by number, by hand."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from explorer import library, reading
from explorer.analysis.stages import Stages, stages
from explorer.numbers import three
from tests.browser.visiting import Visitor

TEXT = "To be, or not to be"
OURS = f"/stages?model=shakespeare&layer=1&head=1&text={TEXT}&held=q5k2"
PUBLISHED = "/stages?model=t5&part=Encoder&layer=1&head=2&text=the+cat&held=q1k0"
PAIRS = ("dots", "scaled", "logits", "weights")
ON, LATER = re.compile(r"\bon\b"), re.compile("later")


def panel(visitor: Visitor, of: str) -> Locator:
    return visitor.widget("stages").locator(f'.panel[data-of="{of}"]')


def symbol(visitor: Visitor, of: str) -> Locator:
    """The smallest place of a symbol in the equation."""
    return visitor.widget("stages").locator(f'.equation [data-of="{of}"]').last


def says(visitor: Visitor, of: str, value: float) -> None:
    expect(panel(visitor, of).locator(".now")).to_have_text(three(value))


@pytest.fixture(scope="module")
def one() -> Stages:
    found = reading.read(library.open_model("shakespeare"), TEXT)
    count = len(found.target)
    return stages(found, "decoder.self_attn", 1, 1, range(count), range(count))


def test_a_held_cell_has_its_number_in_every_stage(visitor: Visitor, one: Stages) -> None:
    page = visitor.open(OURS)
    visitor.drawn("stages")
    for of in PAIRS:
        says(visitor, of, float(getattr(one, of)[5, 2]))
    says(visitor, "added", 0.0)
    panel(visitor, "dots").locator("canvas").focus()
    page.keyboard.press("ArrowLeft")
    visitor.asks(held="q5k1")
    says(visitor, "weights", float(one.weights[5, 1]))
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    visitor.asks(held="q5k7")
    says(visitor, "dots", float(one.dots[5, 7]))
    for of, value in (("added", "−∞"), ("logits", "−∞"), ("weights", "0")):
        expect(panel(visitor, of).locator(".now")).to_have_text(value)
    expect(visitor.widget("stages").locator(".sentence")).to_contain_text("may not look at")
    left, top, wide, high = map(float, str(panel(visitor, "q").get_attribute("data-cells")).split())
    canvas = panel(visitor, "q").locator("canvas")
    canvas.hover(position={"x": left + 3.5 * wide, "y": top + 5.5 * high})
    for of, value in (("q", three(float(one.q[5, 3]))), ("k", three(float(one.k[7, 3])))):
        expect(panel(visitor, of).locator(".now")).to_have_text(f"[3] {value}")
    page.get_by_role("link", name="This cell's ledger, on to the stream").click()
    visitor.titled("Query and key")
    visitor.rest()
    expect(visitor.widget("query").locator("input")).to_have_value(re.compile("^5 ·"))
    expect(visitor.widget("key").locator("input")).to_have_value(re.compile("^7 ·"))
    expect(page.get_by_text("From the weight to the stream")).to_be_visible()


def test_stages_are_revealed_one_after_the_other_and_a_reload_repeats_it(
    visitor: Visitor, one: Stages
) -> None:
    page = visitor.open(OURS)
    visitor.drawn("stages")
    page.get_by_role("radio", name="scaled", exact=True).click()
    visitor.asks(up_to="scaled")
    for of in ("logits", "weights", "v", "out"):
        expect(panel(visitor, of)).to_have_class(LATER)
        expect(panel(visitor, of).locator(".now")).to_have_text("")
    for of in ("dots", "scaled"):
        expect(panel(visitor, of)).not_to_have_class(LATER)
    page.get_by_role("radio", name="softmax", exact=True).click()
    visitor.asks(up_to="softmax")
    expect(panel(visitor, "weights")).not_to_have_class(LATER)
    page.reload()
    visitor.rest()
    visitor.drawn("stages")
    expect(panel(visitor, "out")).to_have_class(LATER)
    says(visitor, "weights", float(one.weights[5, 2]))


@pytest.mark.parametrize("address", [OURS, PUBLISHED], ids=["ours", "published"])
def test_symbol_and_number_find_each_other(visitor: Visitor, address: str) -> None:
    """A published T5 has a scale of its own and a bias where ours has a mask."""
    visitor.open(address)
    visitor.drawn("stages")
    about = visitor.widget("stages").locator(".about")
    bias = "the number that the positions add" if address == PUBLISHED else "M: 0 where"
    for of, said in (("q", "Q: a query of"), ("added", bias), ("v", "V: the")):
        symbol(visitor, of).hover()
        expect(panel(visitor, of)).to_have_class(ON)
        expect(panel(visitor, "weights")).to_have_class(re.compile("aside"))
        expect(about).to_contain_text(said)
    for of in ("weights", "k", "out"):
        panel(visitor, of).locator("canvas").hover()
        expect(symbol(visitor, of)).to_have_class(ON)
    symbol(visitor, "added").click()
    visitor.away()
    expect(panel(visitor, "added")).to_have_class(ON)


def test_a_query_and_a_key_are_chosen_and_their_product_is_written_out(visitor: Visitor) -> None:
    page = visitor.open(f"/pairs?model=shakespeare&layer=1&head=1&text={TEXT}")
    visitor.choose("Query", "5 ·")
    visitor.asks(query="5 · ␣not")
    visitor.choose("Key", "2 ·")
    visitor.asks(key="2 · ␣be")
    visitor.says(re.compile(r"“␣not” attends to “␣be”: 0\.\d"))
    drawn = page.get_by_test_id("stVegaLiteChart").locator("canvas, svg.marks")
    expect(drawn).to_have_count(7)
    visitor.turn_to("By size of the product")
    visitor.asks(order="By size of the product")
    page.reload()
    visitor.rest()
    expect(visitor.widget("query").locator("input")).to_have_value("5 · ␣not")
    expect(visitor.widget("key").locator("input")).to_have_value("2 · ␣be")
    expect(page.get_by_role("radio", name="By size of the product")).to_be_checked()
    visitor.choose("Query", "1 ·")
    visitor.says("the mask takes the score out, so the weight is 0")


def test_a_pair_asked_for_in_vain_is_said_until_another_is_chosen(visitor: Visitor) -> None:
    page = visitor.open("/pairs?model=t5&part=Encoder&query=nothing+there")
    note = page.get_by_text("“Query” has no “nothing there” here")
    expect(note).to_be_visible()
    visitor.choose("Query", "3 ·")
    expect(note).to_have_count(0)
    visitor.says("The number that this head's positions add")
    page.get_by_role("radio", name="Cross").click()
    visitor.says("Cross-attention knows no distance")
