"""One head step by step, by hand: every number of a pinned cell, and the equation beside them."""

import re

import pytest
from playwright.sync_api import Locator, expect

from explorer.analysis.head_stages import HeadStages, head_stages_of
from explorer.catalog import opened_model
from explorer.inference import forward_pass
from explorer.text.number_format import three
from tests.browser.visiting import Visitor

TEXT = "To be, or not to be"
OURS = f"/head_steps?model=shakespeare&layer=1&head=1&text={TEXT}&held=q5k2"
ON, LATER = re.compile(r"\bon\b"), re.compile("later")


def panel(visitor: Visitor, of: str) -> Locator:
    return visitor.widget("stages").locator(f'.panel[data-of="{of}"]')


def symbol(visitor: Visitor, of: str) -> Locator:
    """The smallest place of a symbol in the equation."""
    return visitor.widget("stages").locator(f'.equation [data-of="{of}"]').last


def says(visitor: Visitor, **numbers: float | str) -> None:
    """Each of these panels says this of the cell."""
    for of, number in numbers.items():
        shown = number if isinstance(number, str) else three(number)
        expect(panel(visitor, of).locator(".now")).to_have_text(shown)


@pytest.fixture(scope="module")
def one() -> HeadStages:
    found = forward_pass.run_text(opened_model.open_model("shakespeare"), TEXT)
    count = len(found.target)
    return head_stages_of(found, "decoder.self_attn", 1, 1, range(count), range(count))


def test_a_pinned_cell_has_its_number_in_every_stage(visitor: Visitor, one: HeadStages) -> None:
    page = visitor.open(OURS)
    visitor.drawn("stages")
    pairs = {of: getattr(one, of) for of in ("dots", "scaled", "logits", "weights")}
    says(visitor, added=0.0, **{of: float(values[5, 2]) for of, values in pairs.items()})
    panel(visitor, "dots").locator("canvas").focus()
    page.keyboard.press("ArrowLeft")
    visitor.asks(held="q5k1")
    says(visitor, weights=float(one.weights[5, 1]))
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    visitor.asks(held="q5k7")
    says(visitor, dots=float(one.dots[5, 7]), added="−∞", logits="−∞", weights="0")
    expect(visitor.widget("stages").locator(".sentence")).to_contain_text("is masked for")
    left, top, wide, high = map(float, str(panel(visitor, "q").get_attribute("data-cells")).split())
    canvas = panel(visitor, "q").locator("canvas")
    canvas.hover(position={"x": left + 3.5 * wide, "y": top + 5.5 * high})
    says(visitor, q=f"[3] {three(float(one.q[5, 3]))}", k=f"[3] {three(float(one.k[7, 3]))}")
    page.get_by_role("link", name="Query and key of this cell").click()
    visitor.titled("Query and key")
    visitor.rest()
    expect(visitor.widget("query").locator("input")).to_have_value(re.compile("^5 ·"))
    expect(visitor.widget("key").locator("input")).to_have_value(re.compile("^7 ·"))


def test_symbol_and_number_find_each_other_and_stages_are_revealed_one_after_the_other(
    visitor: Visitor, one: HeadStages
) -> None:
    page = visitor.open(OURS)
    visitor.drawn("stages")
    about = visitor.widget("stages").locator(".about")
    for of, said in (("q", "Q: a query of"), ("added", "M: 0 where"), ("v", "V: the")):
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

    page.get_by_role("radio", name="scaled", exact=True).click()
    visitor.asks(up_to="scaled")
    for of in ("logits", "weights", "v", "out"):
        expect(panel(visitor, of)).to_have_class(LATER)
        says(visitor, **{of: ""})
    for of in ("dots", "scaled"):
        expect(panel(visitor, of)).not_to_have_class(LATER)
    page.get_by_role("radio", name="softmax", exact=True).click()
    visitor.asks(up_to="softmax")
    expect(panel(visitor, "weights")).not_to_have_class(LATER)
    page.reload()
    visitor.rest()
    visitor.drawn("stages")
    expect(panel(visitor, "out")).to_have_class(LATER)
    says(visitor, weights=float(one.weights[5, 2]))


def test_what_stands_below_begins_at_one_height(visitor: Visitor) -> None:
    """M, which is over queries and keys, beside the vectors of either."""
    visitor.open(OURS)
    visitor.drawn("stages")
    tops = [
        float(str(panel(visitor, of).get_attribute("data-cells")).split()[1])
        for of in ("q", "k", "added", "v", "out")
    ]
    assert len(set(tops)) == 1
