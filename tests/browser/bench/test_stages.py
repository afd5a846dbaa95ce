"""A head step by step, by hand: what the browser shows is recomputed from the core."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from playwright.sync_api import FloatRect, Locator, expect

from explorer import library, reading
from explorer.analysis.stages import Stages, stages
from explorer.numbers import three
from tests import zoo
from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor

OURS = "/stages?model=shakespeare&layer=1&head=1&text=To+be,+or+not+to+be&held=q5k2"
PUBLISHED = "/stages?model=t5&part=Encoder&layer=1&head=2&text=the+cat&held=q1k0"
PAIRS = ("dots", "scaled", "logits", "weights")


def panel(visitor: Visitor, of: str) -> Locator:
    return visitor.widget("stages").locator(f'.panel[data-of="{of}"]')


def symbol(visitor: Visitor, of: str) -> Locator:
    """The smallest place of a symbol in the equation."""
    return visitor.widget("stages").locator(f'.equation [data-of="{of}"]').last


def says(visitor: Visitor, of: str, value: float) -> None:
    expect(panel(visitor, of).locator(".now")).to_have_text(three(value))


def box_of(drawn: Locator) -> FloatRect:
    box = drawn.bounding_box()
    assert box is not None
    return box


def ours() -> Stages:
    found = reading.read(library.open_model("shakespeare"), "To be, or not to be")
    count = len(found.target)
    return stages(found, "decoder.self_attn", 1, 1, range(count), range(count))


def published() -> Stages:
    """The same of the T5 that the server was started with."""
    with tempfile.TemporaryDirectory() as folder:
        opened = library.opened_from(zoo.t5(Path(folder) / "t5"), "t5")
        found = reading.read(opened, "the cat")
    rows = range(len(found.source))
    return stages(found, "encoder.self_attn", 1, 2, rows, rows)


def test_score_scale_mask_softmax_staged_with_real_values_to_the_stream(visitor: Visitor) -> None:
    page = visitor.open(OURS)
    visitor.drawn("stages")
    one = ours()
    for of in PAIRS:
        says(visitor, of, float(getattr(one, of)[5, 2]))
    says(visitor, "added", 0.0)
    expect(page.get_by_text(f"by more than {three(one.difference)} of the largest")).to_be_visible()

    panel(visitor, "dots").locator("canvas").focus()
    page.keyboard.press("ArrowLeft")
    visitor.asks(held="q5k1")
    for of in PAIRS:
        says(visitor, of, float(getattr(one, of)[5, 1]))
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    visitor.asks(held="q5k7")
    says(visitor, "dots", float(one.dots[5, 7]))
    for of, value in (("added", "−∞"), ("logits", "−∞"), ("weights", "0")):
        expect(panel(visitor, of).locator(".now")).to_have_text(value)
    expect(visitor.widget("stages").locator(".sentence")).to_contain_text("may not look at")

    page.get_by_role("link", name="This cell's ledger, on to the stream").click()
    visitor.titled("Query and key")
    visitor.rest()
    expect(visitor.widget("query").locator("input")).to_have_value(re.compile("^5 ·"))
    expect(visitor.widget("key").locator("input")).to_have_value(re.compile("^7 ·"))
    expect(page.get_by_text("From the weight to the stream")).to_be_visible()


def test_a_stage_is_revealed_after_the_other_and_the_link_repeats_it(visitor: Visitor) -> None:
    page = visitor.open(OURS)
    visitor.drawn("stages")
    page.get_by_role("radio", name="scaled", exact=True).click()
    visitor.asks(up_to="scaled")
    for of in ("logits", "weights", "v", "out"):
        expect(panel(visitor, of)).to_have_class(re.compile("later"))
        expect(panel(visitor, of).locator(".now")).to_have_text("")
    for of in ("dots", "scaled"):
        expect(panel(visitor, of)).not_to_have_class(re.compile("later"))
    page.get_by_role("radio", name="softmax", exact=True).click()
    visitor.asks(up_to="softmax")
    expect(panel(visitor, "weights")).not_to_have_class(re.compile("later"))
    page.reload()
    visitor.rest()
    visitor.drawn("stages")
    expect(panel(visitor, "out")).to_have_class(re.compile("later"))
    says(visitor, "weights", float(ours().weights[5, 2]))


def test_equation_term_and_number_are_linked_both_ways(visitor: Visitor) -> None:
    page = visitor.open(OURS)
    visitor.drawn("stages")
    about = visitor.widget("stages").locator(".about")
    one = ours()
    for of, said in (("q", "Q: a query of 32 numbers"), ("added", "M: 0 where"), ("v", "V: the")):
        symbol(visitor, of).hover()
        expect(panel(visitor, of)).to_have_class(re.compile(r"\bon\b"))
        expect(panel(visitor, "weights")).to_have_class(re.compile("aside"))
        expect(about).to_contain_text(said)
    shape = " × ".join(map(str, one.q.shape))
    expect(panel(visitor, "q").locator(".shape")).to_have_text(shape)
    for of in ("weights", "k", "out"):
        panel(visitor, of).locator("canvas").hover()
        expect(symbol(visitor, of)).to_have_class(re.compile(r"\bon\b"))
    symbol(visitor, "q").click()
    page.mouse.move(5, 5)
    expect(panel(visitor, "q")).to_have_class(re.compile(r"\bon\b"))


def test_equation_term_and_number_are_linked_of_a_published_model(visitor: Visitor) -> None:
    """With a scale of its own and a bias: symbol and number find each other."""
    page = visitor.open(PUBLISHED)
    visitor.drawn("stages")
    one = published()
    assert one.has_bias
    for of in ("scaled", "added"):
        symbol(visitor, of).hover()
        expect(panel(visitor, of)).to_have_class(re.compile(r"\bon\b"))
        expect(panel(visitor, "q")).to_have_class(re.compile("aside"))
    for of in (*PAIRS, "added"):
        says(visitor, of, float(getattr(one, of)[1, 0]))
    for of in ("added", "logits", "v"):
        panel(visitor, of).locator("canvas").hover()
        expect(symbol(visitor, of)).to_have_class(re.compile(r"\bon\b"))
    symbol(visitor, "added").click()
    page.mouse.move(5, 5)
    expect(panel(visitor, "added")).to_have_class(re.compile(r"\bon\b"))


def test_a_number_of_a_query_meets_the_one_of_the_key(visitor: Visitor) -> None:
    visitor.open(OURS)
    visitor.drawn("stages")
    one = ours()
    cells = str(panel(visitor, "q").get_attribute("data-cells")).split()
    left, top, wide, high = map(float, cells)
    canvas = panel(visitor, "q").locator("canvas")
    canvas.hover(position={"x": left + 3.5 * wide, "y": top + 5.5 * high})
    for of, value in (("q", one.q[5, 3]), ("k", one.k[2, 3])):
        expect(panel(visitor, of).locator(".now")).to_have_text(f"[3] {three(float(value))}")


def test_staged_with_the_bias_of_a_published_model(visitor: Visitor) -> None:
    visitor.open(PUBLISHED)
    visitor.drawn("stages")
    about = visitor.widget("stages").locator(".about")
    symbol(visitor, "added").hover()
    expect(about).to_contain_text("the number that the positions add")
    expect(panel(visitor, "added").locator(".now")).to_have_text(re.compile(r"^−?\d"))


@pytest.mark.parametrize("dark", [False, True])
def test_all_panels_are_inside_the_page(visit: Visit, dark: bool) -> None:
    visitor = visit(width=1920 if dark else 1280, dark=dark)
    visitor.open("/stages?model=long&text=" + "abc+" * 400)
    visitor.drawn("stages")
    view = box_of(visitor.widget("stages"))
    for of in (*PAIRS, "q", "k", "added", "v", "out"):
        box = box_of(panel(visitor, of))
        assert box["x"] + box["width"] <= view["x"] + view["width"] + 1
        assert box["y"] + box["height"] <= view["y"] + view["height"] + 1
    expect(visitor.widget("stages").locator(".about")).to_contain_text("Shown are 32 of 1,6")
