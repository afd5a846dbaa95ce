"""Tokens, queries and keys, by hand: on models of ours and on published ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from explorer import library, reading
from explorer.analysis.pairs import pair
from explorer.numbers import three
from tests import zoo
from tests.browser.conftest import Visit, serve
from tests.browser.visiting import Visitor
from tests.served import Server

TOKENS = "attention_tokens"
OURS = "/attention?model=shakespeare&layer=1&head=2&view=Tokens&text=To+be,+or+not+to+be"
PUBLISHED = "/attention?model=bert&view=Tokens&layer=2&head=3&text=the+cat+is+good"
CROSS = "/attention?model=translation&view=Tokens&part=Cross"
LONG = "/attention?model=shakespeare&view=Tokens&text=" + "to+be+or+not+" * 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("zoo")
    zoo.bert(made / "bert")
    zoo.t5(made / "t5")
    llama(made / "llama")
    return made


def llama(folder: Path) -> None:
    """A decoder with rotary positions whose four heads share two keys; it has no tokenizer."""
    config = zoo.reference().LlamaConfig(
        vocab_size=60,
        hidden_size=32,
        intermediate_size=40,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    zoo.reference().LlamaForCausalLM(config).save_pretrained(folder)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Server]:
    """The app beside a folder of published models."""
    runs = tmp_path_factory.mktemp("served") / "runs"
    yield from serve(runs, EXPLORER_MODELS=str(folder), HF_HUB_OFFLINE="1")


def chip(visitor: Visitor, at: int, side: int = 0) -> Locator:
    return visitor.widget(TOKENS).locator(f'.chip[data-side="{side}"][data-at="{at}"]')


def inspected(visitor: Visitor, part: str) -> Locator:
    return visitor.widget(TOKENS).locator(part)


def chosen(visitor: Visitor, key: str) -> Locator:
    return visitor.widget(key).locator("input")


def ledger_says(visitor: Visitor, value: str) -> None:
    """One of the steps from the product to the weight."""
    cells = visitor.page.get_by_test_id("stTable").get_by_role("cell")
    expect(cells.filter(has_text=value).first).to_be_visible()


def charts(visitor: Visitor, count: int) -> None:
    """So many charts are drawn: query, key, product, and the distance where there is one."""
    drawn = visitor.page.get_by_test_id("stVegaLiteChart").locator("canvas, svg.marks")
    expect(drawn).to_have_count(count)


@pytest.mark.parametrize("address", [OURS, PUBLISHED], ids=["ours", "published"])
def test_hover_value_lock_and_both_directions_of_a_token(visitor: Visitor, address: str) -> None:
    page = visitor.open(address)
    visitor.drawn(TOKENS)
    chip(visitor, 2).hover()
    sentence = inspected(visitor, ".sentence")
    expect(sentence).to_contain_text("is token 2 of")
    for half, lead in (("above", "looks at"), ("below", "looked at by")):
        line = inspected(visitor, f".{half} .said")
        expect(line).to_contain_text(lead)
        named = 3 if address == OURS and half == "above" else 5
        expect(line.locator(".partner")).to_have_count(named)
        expect(line.locator(".value").first).to_contain_text("0.")
    chip(visitor, 2).click()
    page.mouse.move(5, 5)
    expect(sentence).to_contain_text("held, Esc lets go")
    page.keyboard.press("ArrowRight")
    expect(sentence).to_contain_text("is token 3 of")
    page.keyboard.press("Escape")
    expect(sentence).to_contain_text("Point at a token")
    assert visitor.query()["view"] == "Tokens"


def test_the_two_strips_of_cross_attention(visitor: Visitor) -> None:
    visitor.open(CROSS)
    visitor.drawn(TOKENS)
    chip(visitor, 1, side=0).hover()
    expect(inspected(visitor, ".above .said")).to_contain_text("looks at")
    expect(inspected(visitor, ".below .said")).to_have_text("")
    chip(visitor, 1, side=1).hover()
    expect(inspected(visitor, ".below .said")).to_contain_text("looked at by")


@pytest.mark.parametrize("width", [1280, 1920])
def test_many_tokens_stay_inside_the_view(visit: Visit, width: int) -> None:
    visitor = visit(width=width, dark=width == 1920)
    visitor.open(LONG)
    visitor.drawn(TOKENS)
    last = visitor.widget(TOKENS).locator(".chip").last
    last.scroll_into_view_if_needed()
    last.hover()
    expect(inspected(visitor, ".sentence")).to_contain_text("is token")
    box, view = last.bounding_box(), visitor.widget(TOKENS).bounding_box()
    assert box is not None
    assert view is not None
    assert box["x"] + box["width"] <= view["x"] + view["width"]


def test_q_and_k_vectors_with_real_values_of_ours(visitor: Visitor) -> None:
    page = visitor.open("/pairs?model=shakespeare&layer=1&head=1&text=To+be,+or+not+to+be")
    visitor.choose("Query", "5 ·")
    visitor.asks(query="5 · ␣not")
    visitor.choose("Key", "2 ·")
    visitor.asks(key="2 · ␣be")
    found = reading.read(library.open_model("shakespeare"), "To be, or not to be")
    one = pair(found, "decoder.self_attn", 1, 1, 5, 2)
    expect(page.get_by_text(f"“␣not” attends to “␣be”: {three(one.weight)}")).to_be_visible()
    for value in (one.dot, one.score, one.total, one.weight):
        ledger_says(visitor, three(value))
    charts(visitor, 7)
    page.get_by_role("radio", name="By size of the product").click()
    visitor.asks(order="By size of the product")
    page.reload()
    visitor.rest()
    expect(chosen(visitor, "query")).to_have_value("5 · ␣not")
    expect(chosen(visitor, "key")).to_have_value("2 · ␣be")
    expect(page.get_by_role("radio", name="By size of the product")).to_be_checked()
    visitor.choose("Query", "1 ·")
    expect(page.get_by_text("the mask takes the score out, so the weight is 0")).to_be_visible()


def test_q_and_k_vectors_of_a_published_model_with_rotary_positions(visitor: Visitor) -> None:
    page = visitor.open("/pairs?model=llama&layer=1&head=3&text=5+17+3+9+21")
    visitor.choose("Query", "3 ·")
    visitor.choose("Key", "1 ·")
    expect(chosen(visitor, "query")).to_have_value("3 · 9")
    expect(chosen(visitor, "key")).to_have_value("1 · 17")
    expect(page.get_by_text("turned by the model's own angles")).to_be_visible()
    expect(page.get_by_text("The dot is this pair, 2 apart.")).to_be_visible()
    expect(page.get_by_text("Heads 2 to 3 share this key")).to_be_visible()
    charts(visitor, 8)
    ledger_says(visitor, "÷ √8")


def test_the_bias_of_a_published_encoder_decoder_and_its_cross_attention(visitor: Visitor) -> None:
    page = visitor.open("/pairs?model=t5&part=Encoder&query=nothing+there")
    expect(page.get_by_text("“Query” has no “nothing there” here")).to_be_visible()
    expect(page.get_by_text("The number that this head's positions add")).to_be_visible()
    ledger_says(visitor, "plus the bias of the distance")
    visitor.choose("Query", "3 ·")
    expect(page.get_by_text("“Query” has no")).to_have_count(0)
    page.get_by_role("radio", name="Cross").click()
    expect(page.get_by_text("Cross-attention knows no distance")).to_be_visible()
    expect(page.get_by_text("the model looks at").first).to_be_visible()


def test_what_was_not_chosen_follows_the_head(visitor: Visitor) -> None:
    visitor.open("/pairs?model=bert&text=the+cat+is+good")
    expect(chosen(visitor, "query")).to_have_value("5 · [SEP]")
    visitor.type("the cat is good and the dog")
    expect(chosen(visitor, "query")).to_have_value("8 · [SEP]")
    assert "query" not in visitor.query()
