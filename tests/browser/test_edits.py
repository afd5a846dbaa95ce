"""Changing the pass by hand: heads, layers, edges, masks, tokens and patches, undone and redone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.visiting import Visitor
from tests.served import wait_until

NOTHING = "Nothing is changed yet."
OURS = "model=shakespeare&text=To+be,+or+not"
CHOOSE_AND_CLICK = """(canvas, [name, row, column]) => {
  const options = [...document.querySelectorAll('[data-testid="stMain"] [role="radio"]')];
  options.find((option) => option.innerText.trim() === name).click();
  const [left, top, wide, high] = canvas.closest("[data-cells]").dataset.cells.split(" ");
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new MouseEvent("click", {
    clientX: box.left + +left + wide * (column + 0.4),
    clientY: box.top + +top + high * (row + 0.4),
  }));
}"""


def chart(visitor: Visitor, key: str) -> Locator:
    drawn = visitor.widget(key).locator("svg.marks").first
    drawn.wait_for(state="visible")
    return drawn


def hold(visitor: Visitor, key: str, row: int, column: int) -> None:
    """Click a cell of the matrix under this key, and wait until the address holds it."""
    visitor.click(key, row, column)
    visitor.asks(held=f"q{row}k{column}")
    visitor.rest()


def listed(visitor: Visitor, words: str, times: int = 1) -> None:
    """The list of edits has this one so many times."""
    expect(visitor.widget("edits_made").get_by_text(words)).to_have_count(times)


def edits(visitor: Visitor) -> str:
    return visitor.query().get("edits", "")


def change(visitor: Visitor, what: str) -> None:
    """Choose what kind of edit is made next."""
    visitor.widget("change").get_by_text(what, exact=True).click()
    visitor.asks(change=what)
    visitor.rest()


def test_a_head_a_layer_and_an_edge_are_ablated_and_undone(visitor: Visitor) -> None:
    page = visitor.open(f"/edits?{OURS}&layer=0&head=1")
    expect(page.get_by_text(NOTHING)).to_be_visible()
    before = chart(visitor, "chances").text_content()
    visitor.press("Ablate layer 0, head 1")
    listed(visitor, "head 1 to zero")
    wait_until(lambda: chart(visitor, "chances").text_content() != before, "other chances")
    change(visitor, "Layer")
    visitor.press("Ablate the feed-forward of layer 0")
    listed(visitor, "feed-forward to zero")
    change(visitor, "Edge")
    visitor.press("Cut the edge")
    listed(visitor, "edge ")
    assert edits(visitor).startswith("1.3~h.")
    for left in (2, 1, 0):
        visitor.press("Undo")
        wait_until(lambda left=left: edits(visitor).startswith(f"1.{left}~"), f"{left} edits left")  # type: ignore[misc]
    listed(visitor, "(undone)", 3)
    wait_until(lambda: chart(visitor, "chances").text_content() == before, "the first chances")
    visitor.press("Redo")
    listed(visitor, "(undone)", 2)


def test_an_edit_that_does_not_fit_waits_for_a_text_that_it_fits(visitor: Visitor) -> None:
    long = "To be, or not"
    page = visitor.open(f"/edits?{OURS}&layer=0&head=0&edits=1.1~k.d.a.4")
    listed(visitor, "nobody looks at")
    visitor.type(long[:2])
    expect(page.get_by_text("1 edit does not fit here and is set aside")).to_be_visible()
    listed(visitor, "There is no key 4 here")
    visitor.follow("Attention")
    visitor.type(long)
    visitor.rest()
    visitor.follow("Change the pass")
    listed(visitor, "nobody looks at")
    expect(page.get_by_text("set aside")).to_have_count(0)


def test_an_encoder_decoder_writes_anew(visitor: Visitor) -> None:
    page = visitor.open("/edits?model=translation&part=Cross&layer=0&change=Layer")
    written = page.get_by_text(re.compile("^After, it writes:"))
    before = written.text_content()
    visitor.press("Ablate the attention of layer 0")
    listed(visitor, "attention to zero")
    expect(written).not_to_have_text(before or "")


def test_every_head_is_ablated_at_once_and_a_click_chooses_or_ablates_one(visitor: Visitor) -> None:
    page = visitor.open(f"/edits?{OURS}&layer=0&head=0&look=Every+head")
    visitor.pick("heads_off", layer=1, head=1)
    visitor.asks(layer="1", head="1")
    visitor.rest()
    assert edits(visitor) == ""
    expect(page.get_by_text("in the pass as it is")).to_be_visible()
    # The server may hear of the choice and the click at once, with no drawing between them.
    canvas = visitor.widget("heads_off").locator("canvas")
    canvas.evaluate(CHOOSE_AND_CLICK, ["Ablates the head", 0, 2])
    listed(visitor, "Layer 0, head 2 to zero")
    expect(page.get_by_text("in the pass with your edits")).to_be_visible()


def test_faithfulness_of_a_map(visitor: Visitor) -> None:
    visitor.open(f"/edits?{OURS}&layer=0&head=1&look=Faithfulness")
    before = chart(visitor, "faithfulness").inner_html()
    visitor.turn_to("The whole layer")
    visitor.asks(edges_of="The whole layer")
    wait_until(lambda: chart(visitor, "faithfulness").inner_html() != before, "another chart")


def test_a_cell_held_in_the_head_is_changed_at_once(visitor: Visitor) -> None:
    page = visitor.open(f"/attention?{OURS}&layer=0&head=1")
    hold(visitor, "attention_head", 2, 1)
    page.get_by_role("link", name="Change the held cell or this head").click()
    visitor.titled("Change the pass")
    visitor.rest()
    expect(page.get_by_text(re.compile(r"^Held: .* \(2\) → .* \(1\)$"))).to_be_visible()
    visitor.press("Cut this edge in head 1")
    listed(visitor, "head 1, edge")
    hold(visitor, "map_before", 1, 0)
    visitor.press("Forbid this look in layer 0")
    listed(visitor, "may not look at")
    visitor.press("Allow this look in layer 0")
    listed(visitor, "may not look at", 0)
    expect(page.get_by_role("button", name="Remove")).to_have_count(1)


def test_a_mask_is_painted_cell_by_cell_and_painted_back(visitor: Visitor) -> None:
    page = visitor.open(f"/edits?{OURS}&layer=0&head=0&change=Mask&mask_how=Cell+by+cell")
    before = visitor.picture("map_after")
    visitor.click("paint", 0, 0)
    listed(visitor, "may not look at")
    expect(page.get_by_text("May look nowhere")).to_be_visible()
    visitor.away()
    visitor.changed("map_after", before)
    visitor.rest()
    visitor.click("paint", 0, 0)
    wait_until(lambda: edits(visitor) == "", "painted back, so nothing is changed")
    visitor.away()
    visitor.shows("map_after", before)


def test_a_mask_preset_is_set_once(visitor: Visitor) -> None:
    page = visitor.open(f"/edits?{OURS}&layer=0&head=0&change=Mask")
    before = visitor.picture("map_after")
    visitor.widget("mask_preset").get_by_text("Padding", exact=True).click()
    expect(page.get_by_label("Tokens", exact=True)).to_be_visible()
    visitor.press("Set the mask")
    listed(visitor, "the last 2 are filler, and nobody looks at them")
    visitor.changed("map_after", before)
    visitor.press("Set the mask")
    listed(visitor, "filler", 1)


def test_a_token_is_replaced_and_another_masked(visitor: Visitor) -> None:
    page = visitor.open("/edits?model=bert&text=the+cat+is+good&change=Token")
    tokens = visitor.widget("token_to_change")
    tokens.get_by_text("good", exact=True).click()
    expect(page.get_by_text("Token 4 is “good”.")).to_be_visible()
    visitor.fill("Becomes", "nonsense")
    expect(page.get_by_text(re.compile("is (not in this model|[0-9]+ tokens)"))).to_be_visible()
    visitor.fill("Becomes", "dog")
    visitor.press("Replace")
    listed(visitor, "“good” (4) becomes “dog”")
    expect(tokens.get_by_text("dog", exact=True)).to_be_visible()
    visitor.press("Mask it")
    listed(visitor, "becomes “[MASK]”")


def test_a_head_or_every_head_is_patched_from_another_sentence(visitor: Visitor) -> None:
    page = visitor.open("/edits?model=induction&text=kqzrkqz&change=Patch&layer=0&head=0")
    button = page.get_by_role("button", name="Patch layer 0, head 0", exact=True)
    visitor.fill("Another sentence", "kq")
    expect(page.get_by_text("only texts of the same length")).to_be_visible()
    expect(button).to_be_disabled()
    visitor.fill("Another sentence", "kqarkqa")
    expect(page.get_by_text("only texts of the same length")).to_have_count(0)
    button.click()
    listed(visitor, "as in “kqarkqa”")
    page = visitor.open("/edits?model=induction&text=kqzrkqz&look=Every+head")
    off = visitor.picture("heads_off")
    page.get_by_text("Patched", exact=True).click()
    visitor.fill("Another sentence of as many tokens", "kqarkqa")
    expect(page.get_by_text("Each head alone as it is over the other sentence")).to_be_visible()
    visitor.changed("heads_off", off)
    visitor.asks(heads_are="Patched", heads_from="kqarkqa")


@pytest.mark.parametrize(
    ("address", "said", "waits"),
    [
        ("edits=1.2~h.d.0.1.z~what", "“what” in the address is no edit; it was dropped.", ""),
        ("edits=1.1~h.d.9.1.z", "There is no layer 9 here: there are 2.", "h.d.9.1.z"),
    ],
    ids=["no edit", "no layer"],
)
def test_what_the_address_asks_in_vain_is_said_and_replaced_by_what_is_made(
    visitor: Visitor, address: str, said: str, waits: str
) -> None:
    page = visitor.open(f"/edits?model=gpt2&text=5+17+3&layer=0&head=1&{address}")
    expect(page.get_by_text(said)).to_be_visible()
    visitor.press("Ablate layer 0, head 1")  # from then on the address holds what is made
    wanted = f"1.2~{waits}~h.d.0.1.z" if waits else "1.1~h.d.0.1.z"
    wait_until(lambda: edits(visitor) == wanted, "what is made in the address")
