"""The Positions page: every scheme in every view, other orders, longer texts, and their bounds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.analysis.position_experiments import right_and_doubled
from explorer.analysis.position_schemes import SCHEMES
from explorer.catalog import opened_model
from explorer.inference import forward_pass
from explorer.inference.position_passes import Permuted
from explorer.text.literal import literal
from explorer.views.positions.doubled_exponent import RIGHT, WRONG
from models.config import POSITIONS
from tests import apps
from tests.apps import said, views
from tests.views.drawing import long_model, press, words_model

VIEWS = ("Scheme", "Permutation", "Length extrapolation", "Doubled exponent")
ORDER, LONGER = VIEWS[1:3]
OWN_ORDER = {"lab": ORDER, "order_of": "Custom order"}

pytestmark = pytest.mark.usefixtures("small_models")


def page(**address: str) -> AppTest:
    return apps.page("input/positions", **{"model": "letters", **address})


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shelf of one's own."""
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path))
    return tmp_path


def test_every_scheme_of_a_model_that_has_it_has_every_view(own: Path) -> None:
    for scheme in POSITIONS:
        words_model(own, scheme, positions=scheme)
        for view in VIEWS:
            at = page(model=scheme, lab=view)
            assert "This is the chosen model's own scheme." in said(at)
            assert at.segmented_control(key="scheme").options[0] == SCHEMES[scheme]
            assert "no such trained positions" not in said(at)
    at = page(model="learned", lab=LONGER)
    assert "The table has 24 rows, so 24 tokens fit: position 24 has no vector" in said(at)


def test_a_scheme_that_the_model_does_not_have_is_made_up_where_it_needs_no_training() -> None:
    for scheme in ["Sinusoidal", "Learned", "Rotary", "ALiBi", "None"]:
        at = page(scheme=scheme)
        assert ("no such trained positions" in said(at)) == (scheme == "Learned")
    for scheme in ["Learned", "Relative"]:
        for view in [ORDER, LONGER]:
            missing = "These positions are trained parameters, and this model has none"
            assert missing in said(page(scheme=scheme, lab=view))
    at = page(scheme="Relative")
    assert "This model has no trained biases for distances" in said(at)
    assert "products" in views(at)
    at = page(scheme="ALiBi", head="1")
    assert "Head 1: query against key" in said(at)
    at.selectbox(key="model").set_value("reviews").run()
    assert not at.exception
    assert "This is the chosen model's own scheme." in said(at), "another model, its own scheme"


def test_trained_positions_of_another_model_are_a_click_away(own: Path) -> None:
    words_model(own, "plain")
    at = page(model="plain", scheme="Learned")
    assert "No other model here has them either: train one" in said(at)
    marked = "*taught* $x$ :smile:"
    for name in ("taught", marked):
        words_model(own, name, positions="learned")
    at = page(model="plain", scheme="Learned")
    assert at.button(key=f"with_{marked}").label == f"Open {literal(marked)}"
    press(at, "with_taught")
    assert at.selectbox(key="model").value == "taught"
    assert "positions_table" in views(at)


def test_a_longer_text_is_the_encoders_and_said_to_be() -> None:
    for part, name in [("Decoder", "Decoder self-attention"), ("Cross", "Cross-attention")]:
        at = page(model="translation", lab=LONGER, part=part)
        assert f"{name}, chosen in the sidebar, reads the generated text." in said(at)
        assert "Encoder self-attention · Layer 0, head 0, effective keys per query" in said(at)


def test_an_order_that_is_none_is_one_sentence_with_the_way_out() -> None:
    at = page(**OWN_ORDER)
    as_it_was = "The order is the same, so nothing changes."
    assert as_it_was in said(at)
    at.text_input(key="text").set_value("the cat and the hat").run()
    assert as_it_was in said(at), "an order nobody chose follows the text"
    for places in ["", "0 0 1", "a b c", "0 1 2 3 99999", "-1 0"]:
        at.text_input(key="places").set_value(places).run()
        assert not at.exception
        assert "name each position from 0 to" in said(at), places
    assert "type a sentence" in said(page(text=" ", lab=ORDER))


def test_a_long_text_can_be_turned_around_and_a_longer_one_is_refused(own: Path) -> None:
    long_model(own, "long")
    at = page(model="long", text="abc " * 499, lab=ORDER)
    assert "The order affects the output" in said(at)
    at.segmented_control(key="order_of").set_value("Custom order").run()
    assert not at.exception
    assert "name each position from 0 to 1,9" in said(at)
    at = page(model="long", text="abc", lab=LONGER)
    assert "This model reads 2,048 tokens; texts of more than 2,048 are not run here." in said(at)


def test_only_lengths_that_are_run_are_offered(own: Path) -> None:
    for name, most in (("some", 1_500), ("few", 64)):
        long_model(own, name, positions="rotary", max_len=most)
    at = page(model="some", lab=LONGER)
    assert at.segmented_control(key="times").options == ["1.25 ×"]
    assert "repeated to 1,875 tokens, in one forward pass" in said(at)
    left_out = "Texts of more than 2,048 tokens are not run here, so 1.5 × and 2 × are not offered."
    assert left_out in said(at)
    at = page(model="few", lab=LONGER)
    assert at.segmented_control(key="times").options == ["1.25 ×", "1.5 ×", "2 ×"]
    assert "repeated to 128 tokens, in one forward pass" in said(at)
    assert "not offered" not in said(at)


FORMULAS: dict[str, Callable[[int, int], float]] = {
    "i / d": lambda i, d: i / d,
    "2i / d": lambda i, d: 2 * i / d,
    "2(i + 1) / d": lambda i, d: 2 * (i + 1) / d,
}


def test_the_exponents_in_the_titles_make_the_tables_under_them() -> None:
    width, place = 10, 3
    for title, made in zip((RIGHT, WRONG), right_and_doubled(width, 7, 5), strict=True):
        sine, cosine = re.findall(r"(?:is|and) (\S.*?) for", title)
        for i in range(0, width, 2):
            up = math.sin(place / 10_000 ** FORMULAS[sine](i, width))
            across = math.cos(place / 10_000 ** FORMULAS[cosine](i, width))
            assert made.table[place, i : i + 2].tolist() == pytest.approx([up, across], abs=1e-6)


def test_where_every_token_of_another_order_stands() -> None:
    found = forward_pass.run_text(opened_model.open_model("letters"), "the cat")
    order = torch.randperm(50_000, generator=torch.Generator().manual_seed(0)).tolist()
    places = Permuted(found, found, tuple(order), torch.empty(0)).places
    assert [order[place] for place in places] == list(range(50_000))


def test_an_odd_width_has_its_place() -> None:
    at = page(table_width="An odd width, 7")
    assert "7 dimensions are 3 pairs and a last sine without its cosine." in said(at)
    assert {"positions_table", "products"} <= views(at)
