"""The whole pass, by hand: keys, clicks and buttons, on models of ours and published ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from explorer import library, reading
from explorer.analysis.walk import stages_of
from explorer.analysis.walk_values import Walk, recorded
from explorer.analysis.walk_view import cut
from explorer.library import Opened
from explorer.numbers import three
from tests.browser.visiting import Visitor
from tests.served import Server, wait_until

TRANSLATION = "the black cat does not see the white house"


def here(visitor: Visitor) -> Locator:
    """The stage on the spine where one stands."""
    return visitor.widget("spine").locator("[aria-current=step]")


def stands_at(visitor: Visitor, title: str, stage: str) -> None:
    """On the spine, in the address and over the values."""
    expect(here(visitor)).to_have_text(title)
    visitor.asks(stage=stage)
    visitor.rest()
    expect(visitor.page.get_by_test_id("stMain").locator("strong").first).to_have_text(title)


def walk_of(opened: Opened, text: str, head: int = 0, token: int | None = None) -> Walk:
    """The same values, computed here."""
    of = reading.read(opened, text)
    last = len(of.target or of.source) - 1
    return Walk(of, head, last if token is None else token, lambda sites: recorded(of, sites))


def told(visitor: Visitor, row: int, column: int) -> str:
    """What the sentence over the picture says of a cell, reached with the arrow keys."""
    view = visitor.widget("walk_values")
    canvas, sentence = view.locator("canvas"), view.locator(".sentence")
    canvas.focus()
    canvas.press("Escape")
    canvas.press("ArrowRight")
    for _ in range(row):
        canvas.press("ArrowDown")
    for _ in range(column):
        canvas.press("ArrowRight")
    expect(sentence).not_to_have_class("sentence idle")
    said = sentence.inner_text()
    canvas.press("Escape")
    return said


def numbers_are_right(visitor: Visitor, walk: Walk, name: str, named: Callable[[int], str]) -> None:
    """The first and another cell on the screen, against the values computed here."""
    stage = walk.stages[name]
    stack = "encoder" if "source tokens" in stage.chain[-1] else stage.stack
    count = len(walk.reading.source if stack == "encoder" else walk.reading.target)
    drawn = cut(walk, stage, count - 1, 0, named)
    for row, column in ((0, 0), (min(1, len(drawn.rows) - 1), min(2, len(drawn.columns) - 1))):
        value = float(drawn.values[row, column])
        said = told(visitor, row, column)
        if value == float("-inf"):
            assert "may not look" in said
            continue
        number = said.rpartition(": ")[2].replace("−", "-").replace(",", "").split()[0]
        assert number == three(value).replace("−", "-").replace(",", ""), (name, said)


def test_step_through_the_whole_model_with_the_keys(visitor: Visitor) -> None:
    """The translation model from the tokens to the first stages, forth and back."""
    page = visitor.open(f"/walk?model=translation&text={TRANSLATION.replace(' ', '+')}")
    expect(here(visitor)).to_have_text("Tokens")
    expect(visitor.widget("walk_tokens").locator(".chip")).to_have_count(10)
    for press, title, stage in (
        (" ", "Embedding", "encoder.embed"),
        ("ArrowRight", "Positions", "encoder.pos_embed"),
        ("ArrowDown", "Sum: the stream begins", "encoder.sum"),
        (" ", "Norm", "encoder.0.self_attn.norm"),
        ("ArrowLeft", "Sum: the stream begins", "encoder.sum"),
        ("ArrowUp", "Positions", "encoder.pos_embed"),
    ):
        page.keyboard.press(press)
        stands_at(visitor, title, stage)
    page.reload()
    visitor.rest()
    stands_at(visitor, "Positions", "encoder.pos_embed")


def test_many_quick_steps_end_where_they_lead(visitor: Visitor) -> None:
    page = visitor.open("/walk?model=translation")
    visitor.drawn("spine")
    for _ in range(12):
        page.keyboard.press(" ")
    names = list(stages_of(library.open_model("translation").config))
    stands_at(visitor, names[12].title, names[12].name)
    page.get_by_label("Your sentence", exact=True).press("End")
    page.keyboard.press(" ")
    expect(page.get_by_label("Your sentence", exact=True)).to_have_value(re.compile(r" $"))
    expect(here(visitor)).to_have_text(names[12].title)


def test_every_number_of_the_walk_is_the_models(visitor: Visitor) -> None:
    """Encoder, decoder and cross-attention of the translation model, chosen on the spine."""
    address = TRANSLATION.replace(" ", "+")
    page = visitor.open(f"/walk?model=translation&text={address}&head=0")
    opened = library.open_model("translation")
    walk = walk_of(opened, TRANSLATION)
    spine = visitor.widget("spine")
    for section, titles in (
        (
            "Encoder layer 0",
            {"Queries": "encoder.0.self_attn.q", "Softmax": "encoder.0.self_attn.weights"},
        ),
        (
            "Decoder layer 0",
            {"Masked": "decoder.0.self_attn.masked", "Activation": "decoder.0.mlp.hidden"},
        ),
    ):
        spine.get_by_role("button", name=re.compile(section)).click()
        for title, stage in titles.items():
            spine.get_by_role("button", name=title, exact=True).first.click()
            stands_at(visitor, title, stage)
            numbers_are_right(visitor, walk, stage, str)
    spine.get_by_role("button", name="Scores", exact=True).nth(1).click()
    stands_at(visitor, "Scores", "decoder.0.cross_attn.scores")
    numbers_are_right(visitor, walk, "decoder.0.cross_attn.scores", str)
    expect(page.get_by_role("radio", name="Cross")).to_be_checked()


def test_step_through_a_classifier_to_its_answer(visitor: Visitor) -> None:
    text = "The food was delicious and the staff friendly"
    page = visitor.open(f"/walk?model=reviews&text={text.replace(' ', '+')}&stage=head.pooled")
    next_stage = visitor.widget("spine").get_by_role("button", name="Next", exact=True)
    next_stage.click()
    stands_at(visitor, "Logits", "logits")
    next_stage.click()
    stands_at(visitor, "Softmax", "probabilities")
    expect(next_stage).to_be_disabled()
    opened = library.open_model("reviews")
    walk = walk_of(opened, text)
    numbers_are_right(visitor, walk, "probabilities", str)
    expect(page.get_by_text("batch 1 × classes 2")).to_be_visible()
    visitor.widget("spine").get_by_role("button", name="Back", exact=True).click()
    stands_at(visitor, "Logits", "logits")
    page.keyboard.press(" ")
    stands_at(visitor, "Softmax", "probabilities")


@pytest.mark.parametrize("model", ["bert", "gpt2", "t5"])
def test_step_through_a_published_model(visitor: Visitor, server: Server, model: str) -> None:
    """Every stage of its first block, key by key; the numbers of some of them."""
    folder = Path(server.extra["EXPLORER_MODELS"]) / model
    opened = library.opened_from(folder, model)
    text = "5 17 3" if model == "gpt2" else "the cat was good"
    stack = opened.config.stacks[0]
    made = stages_of(opened.config)
    block = [at for at, stage in enumerate(made) if stage.stack == stack and stage.layer == 0]
    page = visitor.open(
        f"/walk?model={model}&text={text.replace(' ', '+')}&stage={made[block[0]].name}&head=0"
    )
    walk = walk_of(opened, text)
    for at in block:
        stands_at(visitor, made[at].title, made[at].name)
        if made[at].kind in ("projected", "masked", "add", "linear"):
            numbers_are_right(visitor, walk, made[at].name, str)
        page.get_by_role("heading", level=1).click()
        page.keyboard.press("ArrowRight")
    visitor.no_traceback()


def test_a_cell_chooses_its_token_and_the_lengths_follow(visitor: Visitor) -> None:
    visitor.open("/walk?model=shakespeare&stage=decoder.0.resid_mid&text=To+be,+or+not")
    opened = library.open_model("shakespeare")
    of = reading.read(opened, "To be, or not")
    lengths = visitor.widget("spine").locator(".bone .length")
    last = len(of.target) - 1

    def length(token: int) -> str:
        return three(float(of.trace["decoder.0.resid_post"][0, token].norm()))

    expect(lengths.nth(1)).to_have_text(length(last))
    visitor.choose("Token", "1 ·")
    visitor.asks(decoder_token="1")
    expect(lengths.nth(1)).to_have_text(length(1))
    visitor.rest()
    canvas = visitor.widget("walk_values").locator("canvas")
    canvas.focus()
    canvas.press("ArrowDown")
    wait_until(lambda: visitor.query().get("decoder_token") == "2", "the next token")
    visitor.rest()
    expect(lengths.nth(1)).to_have_text(length(2))


def test_bad_wishes_in_the_address_are_said(visitor: Visitor) -> None:
    page = visitor.open("/walk?model=shakespeare&stage=encoder.5.x&decoder_token=999")
    expect(
        page.get_by_text("This model has no stage “encoder.5.x”; showing Tokens.")
    ).to_be_visible()
    expect(page.get_by_text("There is no token “999” here")).to_be_visible()


def test_the_held_pair_travels_to_the_heads_pages_and_back(visitor: Visitor) -> None:
    """By links and by the menu: the query and the key stay, whoever chose them."""
    stage = "encoder.0.self_attn.weights"
    page = visitor.open(
        f"/walk?model=translation&text={TRANSLATION.replace(' ', '+')}&head=0"
        f"&stage={stage}&encoder_token=1&key_token=3"
    )
    visitor.drawn("walk_values")
    page.get_by_role("button", name="Query and key of this pair").click()
    visitor.titled("Query and key")
    visitor.asks(query="1 · black", key="3 · does")
    visitor.choose("Key", "5 ·")
    visitor.asks(key="5 · see")
    visitor.rest()
    page.get_by_role("button", name="This head in the whole pass").click()
    visitor.titled("The whole pass")
    visitor.asks(stage=stage, encoder_token="1", key_token="5")
    visitor.follow("Head, step by step")
    visitor.asks(held="q1k5")
    page.get_by_role("button", name="This head in the whole pass").click()
    visitor.titled("The whole pass")
    visitor.asks(stage=stage, encoder_token="1", key_token="5")
    expect(visitor.widget("walk_values").locator(".place")).to_have_text("query 1, key 5")


def test_the_first_stage_shows_every_tokens_number(visitor: Visitor) -> None:
    page = visitor.open(f"/walk?model=translation&text={TRANSLATION.replace(' ', '+')}")
    opened = library.open_model("translation")
    cells = page.get_by_test_id("stDataFrame").locator('[data-testid^="glide-cell-3-"]')
    for token in reading.read(opened, TRANSLATION).source[:5]:
        expect(cells.filter(has_text=re.compile(rf"^{token.id}$")).first).to_be_attached()
