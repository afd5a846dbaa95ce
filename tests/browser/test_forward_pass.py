"""The pass by hand: its stages by keys and clicks, a pinned pair that travels, an opened layer."""

import re

from playwright.sync_api import Locator, expect

from explorer.analysis.forward_pass.stages import stages_of
from explorer.catalog import opened_model
from tests.browser.conftest import Visit
from tests.browser.visiting import SlowLine, Visitor, box_of

TEXT = "the white cat does not see the black house"
CHOICES = f"model=translation&text={TEXT.replace(' ', '+')}&head=0"
ADDRESS = f"/forward_pass?{CHOICES}"
TOKENS = f"{ADDRESS}&stage=encoder.tokens"
LOWEST = 20
"""Pixels from the middle of a cell to the lower edge of the screen, when it is clicked."""


def here(visitor: Visitor) -> Locator:
    """The chosen stage in the list."""
    return visitor.widget("stage_list").locator("[aria-current=step]")


def stands_at(visitor: Visitor, title: str, stage: str) -> None:
    """In the list, in the address and over the values."""
    expect(here(visitor)).to_have_text(title)
    visitor.asks(stage=stage)
    visitor.rest()
    expect(visitor.page.get_by_test_id("stMain").locator("strong").first).to_have_text(title)


def test_stages_are_chosen_with_keys_in_the_list_and_quicker_than_the_app(visitor: Visitor) -> None:
    page = visitor.open(TOKENS)
    expect(here(visitor)).to_have_text("Tokens")
    for press, title, stage in (
        (" ", "Embedding", "encoder.embed"),
        ("ArrowDown", "Positions", "encoder.pos_embed"),
        ("ArrowLeft", "Embedding", "encoder.embed"),
    ):
        page.keyboard.press(press)
        stands_at(visitor, title, stage)
    stages = visitor.widget("stage_list")
    stages.get_by_role("button", name=re.compile("Decoder layer 0")).click()
    visitor.rest()
    stages.get_by_role("button", name="Scores", exact=True).nth(1).click()
    stands_at(visitor, "Scores", "decoder.0.cross_attn.scores")
    stages.get_by_role("button", name="Next", exact=True).click()
    stands_at(visitor, "Masked scores", "decoder.0.cross_attn.masked")

    visitor.open(TOKENS)
    visitor.drawn("stage_list")
    for _ in range(12):
        page.keyboard.press(" ")
    twelfth = list(stages_of(opened_model.open_model("translation").config))[12]
    stands_at(visitor, twelfth.title, twelfth.name)
    sentence = page.get_by_label("Your sentence", exact=True)
    sentence.press("End")
    page.keyboard.press(" ")
    expect(sentence).to_have_value(re.compile(r" $"))
    expect(here(visitor)).to_have_text(twelfth.title)


def test_a_second_stage_is_chosen_before_the_first_has_come(visit: Visit) -> None:
    """The sidebar, which the browser reports as it was before both, ends at the second."""
    visitor = visit()
    line, page = SlowLine(visitor.page), visitor.open(ADDRESS)
    visitor.drawn("stage_list")
    stages = visitor.widget("stage_list")
    line.hold()
    stages.get_by_role("button", name=re.compile("Decoder layer 0")).click()
    line.answered(page, 1)
    stages.get_by_role("button", name="Scores", exact=True).nth(1).click()
    line.answered(page, 2)
    line.release()
    stands_at(visitor, "Scores", "decoder.0.cross_attn.scores")
    expect(visitor.widget("part").get_by_role("combobox")).to_have_value("Cross")
    expect(visitor.widget("stage_values").locator("canvas")).to_have_attribute(
        "aria-label", re.compile("Cross-attention")
    )


def test_the_sum_of_a_clicked_cell_is_in_view_and_a_pinned_pair_travels(visitor: Visitor) -> None:
    """The last cell has the page scrolled until its sum shows; a pair goes by links and menu."""
    last = len(TEXT.split())
    for stage in ("encoder.0.self_attn.weights", "encoder.0.mlp.out"):
        page = visitor.open(f"{ADDRESS}&stage={stage}&encoder_token=3")
        equation = page.get_by_test_id("stMain").locator(".katex-display").nth(1)
        for row in (0, last):
            canvas, at = visitor.cell("stage_values", row, 1)
            box = box_of(canvas)
            below = max(0, box["y"] + at["y"] + LOWEST - 900)
            page.get_by_test_id("stMain").evaluate("(main, by) => { main.scrollTop += by; }", below)
            page.mouse.click(box["x"] + at["x"], box["y"] + at["y"] - below)
            visitor.asks(encoder_token=str(row))
            visitor.rest()
            expect(equation).to_be_in_viewport(ratio=1)

    stage = "encoder.0.self_attn.weights"
    visitor.open(f"{ADDRESS}&stage={stage}&encoder_token=1&key_token=2")
    visitor.drawn("stage_values")
    visitor.widget("stage_values").locator("canvas").press("ArrowRight")
    visitor.asks(key_token="3")
    visitor.rest()
    page.get_by_role("button", name="Query and key of this pair").click()
    visitor.titled("Query and key")
    visitor.asks(query="1 · white", key="3 · does")
    visitor.choose("Key", "5 ·")
    visitor.asks(key="5 · see")
    visitor.rest()
    page.get_by_role("button", name="This head in the forward pass").click()
    visitor.titled("Forward pass")
    visitor.asks(stage=stage, encoder_token="1", key_token="5")
    visitor.follow("Head, step by step")
    visitor.asks(pinned="q1k5", model="translation", text=TEXT, head="0")


def part(visitor: Visitor, name: str) -> Locator:
    """The first part of the open block whose label begins so."""
    inside = visitor.widget("pass_map").locator(".inside")
    return inside.get_by_role("button", name=re.compile(f"^{name}")).first


def test_a_layer_is_opened_in_the_picture_and_its_parts_are_doors(visitor: Visitor) -> None:
    page = visitor.open(f"/?{CHOICES}&part=Decoder&answer=3")
    visitor.drawn("pass_map")
    canvas = visitor.widget("pass_map").locator(".stage > canvas")
    box = box_of(canvas)
    canvas.click(position={"x": 12, "y": box["height"] / 2})  # the number of the layer
    visitor.asks(block="e0")
    part(visitor, "Scores").press("Escape")
    expect(part(visitor, "Scores")).to_be_hidden()
    page.keyboard.press("Enter")
    visitor.asks(block="d0")
    scores = part(visitor, "Scores, head 0").locator("canvas")
    scores.click(position={"x": 50, "y": 80})  # a small picture
    expect(part(visitor, "Scores, head 1")).to_be_visible()
    expect(page.get_by_role("combobox", name="Head", exact=True)).to_have_value("1")
    part(visitor, "Queries").press("Enter")
    visitor.titled("Query and key")
    visitor.rest()
    expect(visitor.widget("head").locator("input")).to_have_value("1")
    query = page.get_by_role("combobox", name="Query", exact=True)
    expect(query).to_have_value(re.compile("^3 · "))
