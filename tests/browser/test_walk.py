"""The whole pass, by hand: keys, clicks and buttons; and one number followed to the answer."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from explorer import library, reading
from explorer.analysis.walk import stages_of
from explorer.numbers import three
from tests.browser.visiting import Visitor
from tests.served import wait_until

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


def test_stages_are_chosen_on_the_spine_to_the_answer(visitor: Visitor) -> None:
    """Into a layer of the encoder, of the decoder, and of a classifier whose spine ends there."""
    page = visitor.open(f"/walk?model=translation&text={TRANSLATION.replace(' ', '+')}&head=0")
    spine = visitor.widget("spine")
    spine.get_by_role("button", name=re.compile("Encoder layer 0")).click()
    spine.get_by_role("button", name="Queries", exact=True).first.click()
    stands_at(visitor, "Queries", "encoder.0.self_attn.q")
    spine.get_by_role("button", name=re.compile("Decoder layer 0")).click()
    spine.get_by_role("button", name="Scores", exact=True).nth(1).click()
    stands_at(visitor, "Scores", "decoder.0.cross_attn.scores")
    expect(page.get_by_role("radio", name="Cross")).to_be_checked()
    page = visitor.open("/walk?model=reviews&text=The+food+was+delicious&stage=head.pooled")
    next_stage = spine.get_by_role("button", name="Next", exact=True)
    next_stage.click()
    stands_at(visitor, "Logits", "logits")
    next_stage.click()
    stands_at(visitor, "Softmax", "probabilities")
    expect(next_stage).to_be_disabled()
    expect(page.get_by_text("batch 1 × classes 2")).to_be_visible()
    spine.get_by_role("button", name="Back", exact=True).click()
    stands_at(visitor, "Logits", "logits")


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
