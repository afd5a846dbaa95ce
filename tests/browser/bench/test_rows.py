"""Rows of what the bench must do, by hand: from typing a sentence to two thousand tokens of it."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Position, expect

from explorer import library
from explorer.library import Opened
from explorer.reading import read
from explorer.runs.worker import work
from tests.browser.visiting import Visitor
from tests.runs.making import tiny_run
from tests.served import Server, wait_until

HEAD, GRID, LINES, TOKENS = "attention_head", "overview", "attention_lines", "tokens_read"
SENTENCE = "the man who sold the world"
PAGES = (
    "Tokens",
    "Attention",
    "Heads",
    "Query and key",
    "Logit lens",
    "Change the pass",
    "Compare",
)
OURS_AND_PUBLISHED = ["ours", "published"]


def in_cells(visitor: Visitor, key: str, row: float, column: float) -> Position:
    """The middle of a cell of the view under this key."""
    visitor.drawn(key)
    view = visitor.widget(key).locator("[data-cells]")
    left, top, *sizes = map(float, str(view.get_attribute("data-cells")).split())
    wide, high = sizes[0], sizes[-1]
    return Position(x=left + (column + 0.5) * wide, y=top + (row + 0.5) * high)


def canvas(visitor: Visitor, key: str) -> Locator:
    return visitor.widget(key).locator("canvas").first


def point(visitor: Visitor, key: str, row: float, column: float) -> Locator:
    """The sentence of the view under this key while the pointer is over a cell."""
    canvas(visitor, key).hover(position=in_cells(visitor, key, row, column))
    return visitor.widget(key).locator(".sentence")


def sized(visitor: Visitor, key: str, rows: int, columns: int) -> None:
    """Wait until the view has so many rows and columns."""
    label = re.compile(rf"(, |^){rows}( layers)? by {columns}\b")
    expect(canvas(visitor, key)).to_have_attribute("aria-label", label, timeout=60_000)


def opened_from(server: Server, model: str) -> Opened:
    """The model that the app opens under this name, opened here."""
    published = Path(server.extra["EXPLORER_MODELS"]) / model
    folder = published if published.exists() else library.shipped_root() / model
    return library.open_entry(library.look_at(folder))


def of_tokens(opened: Opened, count: int) -> str:
    """A text of so many tokens, or a few more."""
    words = itertools.accumulate(itertools.cycle(["a ", "bc ", "d "]))
    return next(text for text in words if len(opened.tokenizer.encode(text)) > count).strip()


@pytest.mark.parametrize("model", ["shakespeare", "bert"], ids=OURS_AND_PUBLISHED)
def test_type_text_no_code(visitor: Visitor, model: str) -> None:
    page = visitor.open(f"/?model={model}")
    before = visitor.picture("start_head")
    visitor.type(SENTENCE)
    visitor.asks(text=SENTENCE)
    wait_until(lambda: visitor.picture("start_head") != before, "another picture")
    figure = visitor.page.locator("[data-painted], .stVegaLiteChart .marks")
    for title in PAGES:
        visitor.follow(title)
        expect(page.get_by_label("Your sentence", exact=True)).to_have_value(SENTENCE)
        expect(figure.first).to_be_visible(timeout=30_000)
        visitor.no_traceback()
    assert visitor.query()["text"] == SENTENCE


@pytest.mark.parametrize("model", ["shakespeare", "long-gpt2"], ids=OURS_AND_PUBLISHED)
def test_token_id_bytes_readable_pieces(visitor: Visitor, model: str) -> None:
    page = visitor.open(f"/tokens?model={model}&text=to+be")
    visitor.type("to é🙂")
    visitor.asks(text="to é🙂")
    chips = visitor.widget(TOKENS).locator(".chip")
    said = visitor.widget(TOKENS).locator(".sentence")
    pieces = chips.filter(has_text=re.compile("^<0x"))
    expect(pieces.nth(3)).to_be_visible()  # an emoji that was not learnt is its bytes
    readable = chips.filter(has_text=re.compile("^(to|t)$")).first
    readable.hover()
    expect(said).to_contain_text(re.compile(r"is token \d+ of \d+ · id \d+ · characters? 0"))
    expect(said).to_contain_text("bytes 74")
    pieces.last.hover()
    expect(said).to_contain_text("bytes f0 9f 99 82")
    lit = visitor.widget(TOKENS).locator(".text .on")
    expect(lit).to_have_text("🙂")
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()


@pytest.mark.parametrize(
    ("model", "text"),
    [("shakespeare", "To be, or not"), ("bert", "the cat is good")],
    ids=OURS_AND_PUBLISHED,
)
def test_one_head_as_a_matrix_with_numbers(
    visitor: Visitor, server: Server, model: str, text: str
) -> None:
    reading = read(opened_from(server, model), text)
    part = reading.parts[0].name
    weights = reading.weights(part, 1, 2)
    visitor.open(f"/attention?model={model}&text={text}&layer=1&head=2")
    sized(visitor, HEAD, *weights.shape)
    for row, column in ((1, 0), (2, 1), (3, 3)):
        said = point(visitor, HEAD, row, column)
        expect(said).to_contain_text("attends to")
        shown = float(said.inner_text().split()[-1])
        assert shown == pytest.approx(float(weights[row, column]), abs=6e-4)


@pytest.mark.parametrize("model", ["long", "long-gpt2"], ids=OURS_AND_PUBLISHED)
def test_line_view_of_512_tokens_no_cdn(visitor: Visitor, server: Server, model: str) -> None:
    opened = opened_from(server, model)
    text = of_tokens(opened, 512)
    count = len(read(opened, text).tokens)
    page = visitor.open(f"/attention?model={model}&text={text}&view=Lines&layer=0&head=0")
    named = re.compile(f"Lines from {count} query tokens to {count} key tokens")
    expect(canvas(visitor, LINES)).to_have_attribute("aria-label", named)
    before = visitor.picture(LINES)
    canvas(visitor, LINES).hover(position=Position(x=40, y=120))
    wait_until(lambda: visitor.picture(LINES) != before, "the lines of one token")
    visitor.widget(LINES).get_by_role("button").nth(1).click()
    page.mouse.move(5, 5)
    wait_until(lambda: visitor.picture(LINES) != before, "the lines of two heads")
    assert visitor.notes.hosts == {visitor.url.removeprefix("http://")}


@pytest.mark.parametrize(
    ("model", "layers", "heads"),
    [("shakespeare", 2, 4), ("long-gpt2&text=to+be+or+not", 12, 12)],
    ids=OURS_AND_PUBLISHED,
)
def test_all_heads_of_a_layer_and_layers_by_heads_overview(
    visitor: Visitor, model: str, layers: int, heads: int
) -> None:
    page = visitor.open(f"/attention?model={model}&layer=0&head=0")
    sized(visitor, GRID, layers, heads)
    before = visitor.picture(HEAD)
    visitor.pick(GRID, layer=layers - 1, head=1)
    expect(page.get_by_text(f"Layer {layers - 1}, head 1", exact=True)).to_be_visible()
    wait_until(lambda: visitor.picture(HEAD) != before, "another head")
    visitor.rest()
    canvas(visitor, GRID).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"Layer {layers - 1}, head 2", exact=True)).to_be_visible()
    page.get_by_test_id("stMain").get_by_role("radio", name="Lines").click()
    visitor.drawn(LINES)
    expect(visitor.widget(LINES).get_by_role("button")).to_have_count(heads)


@pytest.mark.parametrize(
    ("model", "text"),
    [("translation", "the black cat sleeps"), ("t5", "hello world")],
    ids=OURS_AND_PUBLISHED,
)
def test_encoder_decoder_and_cross_attention(
    visitor: Visitor, server: Server, model: str, text: str
) -> None:
    reading = read(opened_from(server, model), text)
    page = visitor.open(f"/attention?model={model}&text={text}&layer=0&head=0")
    seen: set[str] = set()
    for part in reading.parts:
        page.get_by_test_id("stSidebar").get_by_role("radio", name=part.title, exact=True).click()
        wait_until(lambda: visitor.picture(HEAD) not in seen, f"the picture of {part.title}")
        sized(visitor, HEAD, *reading.weights(part.name, 0, 0).shape)
        looks = part.words.cell.split("}")[1].split("{")[0].strip()
        expect(point(visitor, HEAD, 1, 0)).to_contain_text(looks)
        page.mouse.move(5, 5)
        seen.add(visitor.picture(HEAD))
    assert len(seen) == len(reading.parts) == 3


@pytest.mark.parametrize(
    ("model", "text"),
    [("translation", "the black cat sleeps"), ("bert", "the cat was not good")],
    ids=OURS_AND_PUBLISHED,
)
def test_padding_mask_drawn(visitor: Visitor, model: str, text: str) -> None:
    page = visitor.open(f"/masks?model={model}&text={text}&part=Encoder")
    page.get_by_role("radio", name="A padded batch", exact=True).click()
    expect(page.get_by_role("radio", name="A padded batch", exact=True)).to_be_checked()
    expect(page.get_by_text("Padding: no one looks at filler", exact=True)).to_be_visible()
    visitor.drawn("mask_padding")
    label = str(canvas(visitor, "mask_padding").get_attribute("aria-label"))
    last = int(label.split(" by ")[1].split(".")[0]) - 1
    for key in ("mask_padding", "mask_both", "weights"):
        expect(point(visitor, key, 1, last)).to_contain_text("may not look at")
        expect(point(visitor, key, 1, 1)).not_to_contain_text("may not")


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("long", 2_000), ("long-gpt2", 512)],
    ids=["ours, 2,000 tokens", "published, 512 tokens in 144 heads"],
)
def test_long_inputs_stay_usable(visitor: Visitor, server: Server, model: str, tokens: int) -> None:
    opened = opened_from(server, model)
    text = of_tokens(opened, tokens)
    count = len(read(opened, text).tokens)
    page = visitor.open(f"/attention?model={model}&text=a&layer=0&head=0")
    visitor.type(text)
    sized(visitor, HEAD, count, count)
    visitor.rest()
    visitor.drawn(GRID)
    visitor.drawn(HEAD)
    said = point(visitor, HEAD, 5, 2)
    expect(said).to_contain_text("attends to")
    first = said.inner_text()
    canvas(visitor, HEAD).hover(position=in_cells(visitor, HEAD, 400, 30))
    expect(said).not_to_have_text(first)
    before = visitor.picture(HEAD)
    visitor.pick(GRID, layer=1, head=1)
    expect(page.get_by_text("Layer 1, head 1", exact=True)).to_be_visible()
    wait_until(lambda: visitor.picture(HEAD) != before, "another head")


def test_compare_training_steps(visitor: Visitor, server: Server) -> None:
    run = tiny_run(server.runs)
    work(run.folder)
    page = visitor.open(f"/compare?model={run.name}&text=cab&with=A+training+step")
    visitor.drawn("map_difference")
    before = visitor.picture("map_second")
    visitor.choose("Step", "5")
    visitor.asks(other_step="5")
    expect(page.get_by_text("Step 5", exact=True)).to_be_visible()
    wait_until(lambda: visitor.picture("map_second") != before, "another step")
    expect(page.get_by_text("Both maps are over the same tokens.")).to_be_visible()
