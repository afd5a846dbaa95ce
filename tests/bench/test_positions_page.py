"""The Positions page: every view of every scheme and kind of model, and what is asked in vain."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer import library, reading
from explorer.analysis.positions import Measured, Moved, right_and_doubled
from explorer.bench.positions_doubled import RIGHT, WRONG, lines
from explorer.museum import documents
from explorer.positions import SCHEMES
from explorer.text import character_tokenizer, word_tokenizer
from explorer.text.literal import literal
from explorer.text.special import DECODER
from models.config import POSITIONS
from tests.apps import page, said, views
from tests.grids import grid
from tests.shelf import NAMES, WORDS, put

POSITIONS_PAGE = "look/positions"
VIEWS = ("The scheme", "Another order", "Longer than trained", "A doubled exponent")
ORDER, LONGER = VIEWS[1:3]

pytestmark = pytest.mark.usefixtures("small_models")


@pytest.fixture
def shelf_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a decoder of words there, made otherwise."""

    def make(name: str, **more: Any) -> None:
        put(tmp_path, name, word_tokenizer(WORDS, DECODER), "the cat", kind="decoder", **more)
        monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))

    return make


@grid("view, model", VIEWS, NAMES)
def test_every_kind_of_model_has_every_view(model: str, view: str) -> None:
    assert "This is the chosen model's own scheme." in said(
        page(POSITIONS_PAGE, model=model, lab=view)
    )


@grid("view, scheme", VIEWS, POSITIONS)
def test_every_scheme_of_a_model_that_has_it_has_every_view(
    shelf_of: Any, scheme: str, view: str
) -> None:
    shelf_of("own", positions=scheme)
    at = page(POSITIONS_PAGE, model="own", lab=view)
    assert "This is the chosen model's own scheme." in said(at)
    assert at.segmented_control(key="scheme").options[0] == SCHEMES[scheme]
    assert "no such trained positions" not in said(at)


@grid("view, scheme", [ORDER, LONGER], ["Learned", "Relative"])
def test_trained_numbers_of_another_model_are_not_made_up(scheme: str, view: str) -> None:
    at = page(POSITIONS_PAGE, model="letters", scheme=scheme, lab=view)
    assert "These positions are trained numbers, and this model has none" in said(at)


def test_trained_positions_of_another_model_are_a_click_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shelf_of: Any
) -> None:
    shelf_of("plain")
    at = page(POSITIONS_PAGE, model="plain", scheme="Learned")
    assert "Nor has any other model here: train one" in said(at)
    shelf_of("taught", positions="learned")
    at = page(POSITIONS_PAGE, model="plain", scheme="Learned")
    at.button(key="with_taught").click().run()
    assert not at.exception
    assert at.selectbox(key="model").value == "taught"
    assert "positions_table" in views(at)


def test_a_models_name_on_a_button_is_no_markdown(shelf_of: Any) -> None:
    shelf_of("plain")
    name = "*taught* $x$ :smile:"
    shelf_of(name, positions="learned")
    at = page(POSITIONS_PAGE, model="plain", scheme="Learned")
    assert at.button(key=f"with_{name}").label == f"Open {literal(name)}"


def test_a_longer_text_is_the_encoders_and_said_to_be(subtests: pytest.Subtests) -> None:
    for part in ["Decoder", "Cross"]:
        with subtests.test(part=part):
            at = page(POSITIONS_PAGE, model="translation", lab=LONGER, part=part)
            assert f"{part}, chosen in the sidebar, starts from what is written." in said(at)
            assert "looks at: layer 0, head 0 · Encoder" in said(at)


def test_buckets_are_shown_without_trained_numbers_and_said_to_be() -> None:
    at = page(POSITIONS_PAGE, model="letters", scheme="Relative")
    assert "This model has no trained numbers for distances" in said(at)
    assert "products" in views(at)


def test_a_learned_table_says_how_many_fit(shelf_of: Any) -> None:
    shelf_of("own", positions="learned")
    at = page(POSITIONS_PAGE, model="own", lab=LONGER)
    assert "The table has 24 rows, so 24 tokens fit: position 24 has no vector" in said(at)


def test_what_an_address_asks_for_in_vain_is_said(subtests: pytest.Subtests) -> None:
    for key, value in [("scheme", "Banana"), ("lab", "x")]:
        with subtests.test(key=key):
            assert f"has no “{value}” here; showing" in said(page(POSITIONS_PAGE, **{key: value}))


def test_a_position_that_there_is_not_is_said(subtests: pytest.Subtests) -> None:
    for asked in ["999", "-1", "9" * 5_000]:
        with subtests.test(asked=asked):
            assert "“Position” goes from 0 to" in said(page(POSITIONS_PAGE, place=asked))


def test_an_order_that_is_none_is_one_sentence_with_the_way_out(subtests: pytest.Subtests) -> None:
    for places in ["", "0 0 1", "a b c", "0 1 2 3 99999", "-1 0"]:
        with subtests.test(places=places):
            at = page(POSITIONS_PAGE, model="letters", lab=ORDER, order_of="My own order")
            at.text_input(key="places").set_value(places).run()
            assert not at.exception
            assert "name each place from 0 to" in said(at)


def test_a_text_of_one_token_has_every_view(subtests: pytest.Subtests) -> None:
    for view in VIEWS:
        with subtests.test(view=view):
            assert page(POSITIONS_PAGE, model="letters", text="t", lab=view)


def test_nothing_to_read_is_said() -> None:
    assert "type a sentence" in said(page(POSITIONS_PAGE, model="letters", text=" ", lab=ORDER))


def test_a_long_text_can_be_turned_around_and_a_longer_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = character_tokenizer("abc ", DECODER)
    put(tmp_path, "long", letters, "abc", kind="decoder", max_len=2_048)
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    at = page(POSITIONS_PAGE, model="long", text="abc " * 499, lab=ORDER)
    assert "The pass sees the order" in said(at)
    at = page(POSITIONS_PAGE, model="long", text="abc", lab=LONGER)
    assert "This model reads 2,048 tokens; more than 2,048 are not passed here." in said(at)


def test_only_lengths_that_are_passed_are_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("some", 1_500), ("few", 64)):
        letters = character_tokenizer("abc ", DECODER)
        put(tmp_path, name, letters, "abc", kind="decoder", positions="rotary", max_len=most)
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    at = page(POSITIONS_PAGE, model="some", lab=LONGER)
    assert at.segmented_control(key="times").options == ["1.25 ×"]
    assert "again and again, 1,875 tokens in one pass" in said(at)
    assert "More than 2,048 tokens are not passed here, so 1.5 × and 2 × are not offered." in said(
        at
    )
    at = page(POSITIONS_PAGE, model="few", lab=LONGER)
    assert at.segmented_control(key="times").options == ["1.25 ×", "1.5 ×", "2 ×"]
    assert "again and again, 128 tokens in one pass" in said(at)
    assert "not offered" not in said(at)


def test_another_model_opens_with_its_own_scheme() -> None:
    at = page(POSITIONS_PAGE, model="letters", scheme="Rotary")
    at.selectbox(key="model").set_value("reviews").run()
    assert not at.exception
    assert "This is the chosen model's own scheme." in said(at)


def test_an_order_nobody_chose_follows_the_text() -> None:
    at = page(POSITIONS_PAGE, model="letters", lab=ORDER, order_of="My own order")
    assert "The tokens stand where they stood, so nothing changes." in said(at)
    at.text_input(key="text").set_value("the cat and the hat").run()
    assert "The tokens stand where they stood, so nothing changes." in said(at)


def test_an_own_order_of_a_long_text_has_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = character_tokenizer("abc ", DECODER)
    put(tmp_path, "long", letters, "abc", kind="decoder", max_len=2_048)
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    how = {"text": "abc " * 499, "lab": ORDER, "order_of": "My own order"}
    assert "name each place from 0 to 1,9" in said(page(POSITIONS_PAGE, model="long", **how))


@pytest.mark.parametrize("view", VIEWS)
def test_a_model_whose_numbers_are_none_has_every_view(shelf_of: Any, view: str) -> None:
    shelf_of("broken", positions="rotary")
    named = dict(library.open_model("broken").model.named_parameters())
    named["decoder.blocks.0.self_attn.q_proj.weight"].data.fill_(float("nan"))
    assert page(POSITIONS_PAGE, model="broken", lab=view)
    assert "no value" in said(page("look/stages", model="broken"))


def test_an_order_of_vectors_without_values_is_not_compared(shelf_of: Any) -> None:
    shelf_of("broken", positions="rotary")
    named = dict(library.open_model("broken").model.named_parameters())
    named["decoder.blocks.0.self_attn.q_proj.weight"].data.fill_(float("nan"))
    at = page(POSITIONS_PAGE, model="broken", lab=ORDER)
    assert "The last vectors hold no values, so what changes cannot be told." in said(at)
    assert "no value %" not in said(at)


FORMULAS: dict[str, Callable[[int, int], float]] = {
    "i / d": lambda i, d: i / d,
    "2i / d": lambda i, d: 2 * i / d,
    "2(i + 1) / d": lambda i, d: 2 * (i + 1) / d,
}


def test_the_exponents_in_the_titles_make_the_tables_under_them(subtests: pytest.Subtests) -> None:
    for title in [RIGHT, WRONG]:
        with subtests.test(title=title):
            width, place = 10, 3
            right, wrong = right_and_doubled(width, 7, 5)
            table = wrong.table if title == WRONG else right.table
            sine, cosine = re.findall(r"(?:is|and) (\S.*?) for", title)
            for i in range(0, width, 2):
                up = math.sin(place / 10_000 ** FORMULAS[sine](i, width))
                across = math.cos(place / 10_000 ** FORMULAS[cosine](i, width))
                assert table[place, i : i + 2].tolist() == pytest.approx([up, across], abs=1e-6)


def test_where_every_token_of_another_order_stands() -> None:
    found = reading.read(library.open_model("letters"), "the cat")
    order = torch.randperm(50_000, generator=torch.Generator().manual_seed(0)).tolist()
    places = Moved(found, found, tuple(order), torch.empty(0)).places
    assert [order[place] for place in places] == list(range(50_000))


def test_the_lab_and_the_museum_say_the_same_of_the_doubled_exponent() -> None:
    told = [dict(lines(each))["spread of the products 5 apart"] for each in documents_sizes()]
    assert documents.positions()[-1][1:] == (told[1], told[0])
    assert told[0] == "0, but for rounding"


def documents_sizes() -> tuple[Measured, Measured]:
    return right_and_doubled(documents.WIDTH, documents.POSITIONS, documents.OFFSET)


def test_an_odd_width_has_its_place() -> None:
    at = page(POSITIONS_PAGE, model="letters", table_width="An odd width, 7")
    assert "7 numbers are 3 pairs and a last sine without its cosine." in said(at)
    assert {"positions_table", "products"} <= views(at)


def test_the_picture_of_one_head_says_whose_it_is() -> None:
    at = page(POSITIONS_PAGE, model="letters", scheme="ALiBi", head="1")
    assert "Head 1: query against key" in said(at)
