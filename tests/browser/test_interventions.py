"""Interventions by hand: ablated, painted, cut where a cell is pinned, undone; from a circuit."""

import re

from playwright.sync_api import Locator, expect

from tests.browser.circuit_places import Drawn
from tests.browser.visiting import Visitor
from tests.served import wait_until

OURS = "model=shakespeare&text=To+be,+or+not"
CIRCUITS = (
    "model=induction&part=Decoder&layer=1&head=1&text=abcdeabcdeab&corrupted=adcbeadcbeab"
    "&answer_token=c&against_token=e&steer_strength=1.5"
)
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


def listed(visitor: Visitor, words: str, times: int = 1) -> None:
    """The list of edits has this one so many times."""
    expect(visitor.widget("edits_made").get_by_text(words)).to_have_count(times)


def edits(visitor: Visitor) -> str:
    return visitor.query().get("edits", "")


def test_a_pinned_cell_is_changed_and_a_mask_is_painted_and_painted_back(visitor: Visitor) -> None:
    page = visitor.open(f"/attention?{OURS}&layer=0&head=1")
    visitor.click("attention_head", 2, 1)
    visitor.asks(pinned="q2k1")
    page.get_by_role("link", name="Interventions on the pinned cell").click()
    visitor.titled("Interventions")
    visitor.rest()
    expect(page.get_by_text(re.compile(r"^Pinned: .* \(2\) attends to .* \(1\)$"))).to_be_visible()
    visitor.press("Cut this edge in head 1")
    listed(visitor, "head 1: edge")
    visitor.press("Remove")
    visitor.choose("Intervention", "Mask")
    visitor.asks(change="Mask")
    visitor.turn_to("Cell by cell")
    visitor.away()
    before = visitor.picture("map_before")
    visitor.click("paint", 0, 0)
    listed(visitor, "may not attend to")
    visitor.away()
    visitor.changed("map_after", before)
    visitor.rest()
    visitor.click("paint", 0, 0)
    wait_until(lambda: edits(visitor) == "", "painted back, so nothing is changed")
    visitor.away()
    visitor.shows("map_before", before)


def test_the_pass_is_changed_in_two_places_undone_redone_and_compared(visitor: Visitor) -> None:
    page = visitor.open(f"/interventions?{OURS}&layer=0&head=1")
    before = chart(visitor, "probabilities").text_content()
    visitor.press("Ablate layer 0, head 1")
    listed(visitor, "head 1: zero ablation")
    wait_until(lambda: chart(visitor, "probabilities").text_content() != before, "others")
    visitor.choose("Intervention", "Edge")
    visitor.asks(change="Edge")
    visitor.press("Cut the edge")
    listed(visitor, "edge ")
    for left in (1, 0):
        visitor.press("Undo")
        wait_until(lambda left=left: edits(visitor).startswith(f"1.{left}~"), f"{left} edits left")  # type: ignore[misc]
    listed(visitor, "(undone)", 2)
    wait_until(lambda: chart(visitor, "probabilities").text_content() == before, "the first")
    visitor.press("Redo")
    listed(visitor, "(undone)", 1)
    visitor.follow("Compare")
    visitor.choose("Compared with", "Your interventions")
    page.get_by_text("Undo or remove", exact=True).click()
    listed(visitor, "head 1: zero ablation")


def test_every_head_is_ablated_at_once_and_a_click_chooses_or_ablates_one(visitor: Visitor) -> None:
    page = visitor.open(f"/interventions?{OURS}&layer=0&head=0&look=Every+head")
    visitor.pick("heads_off", layer=1, head=1)
    visitor.at_head(1, 1)
    visitor.rest()
    assert edits(visitor) == ""
    expect(page.get_by_text("in the original pass")).to_be_visible()
    # The server may hear of the choice and the click at once, with no drawing between them.
    canvas = visitor.widget("heads_off").locator("canvas")
    canvas.evaluate(CHOOSE_AND_CLICK, ["Ablates the head", 0, 2])
    listed(visitor, "Layer 0, head 2: zero ablation")
    expect(page.get_by_text("in the pass with your interventions")).to_be_visible()


def test_a_part_of_a_circuit_is_picked_and_its_direction_is_added(visitor: Visitor) -> None:
    page = visitor.open(f"/circuits?{CIRCUITS}&circuit_view=Circuit&attributed_by=EAP")
    visitor.drawn("circuit_map")
    drawn = Drawn(visitor)
    (name, *_) = (each for each in drawn.items() if each.startswith("0."))
    part = name.partition("@")[0]
    drawn.click(name)
    visitor.asks(drawn_part=part, layer="0")
    expect(drawn.view.locator(".card .title").first).to_have_text(f"Head {part}")
    visitor.drawn("card_map")
    visitor.rest()
    drawn.canvas.focus()
    for key in ("Escape", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    visitor.asks(drawn_part="e0")
    expect(drawn.view.locator(".card")).to_contain_text("edge 1 of")

    visitor.open(f"/circuits?{CIRCUITS}&circuit_view=Steering")
    chart(visitor, "steered_over_strength")
    visitor.press("Add to the interventions")
    wait_until(lambda: edits(visitor).startswith("1.1~s.d.1.a.1_5."), "it is in the address")
    visitor.follow("Interventions")
    listed(visitor, "Layer 1: 1.50 × (“abcdeabcdeab” − “adcbeadcbeab”) added")
