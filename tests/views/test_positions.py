"""The Positions page: every scheme in every view, other orders, longer texts, and their bounds."""

import math
import re
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from explorer.analysis.position_schemes import EXPLANATIONS, SCHEMES, right_and_doubled
from explorer.catalog import opened_model
from explorer.catalog.shipped import SHIPPED
from explorer.components import wire
from explorer.inference import forward_pass
from explorer.inference.position_passes import Permutation, permuted, swapped_order
from explorer.text.number_format import three
from explorer.text.visible_text import literal
from explorer.views.input.doubled_exponent import RIGHT, WRONG
from explorer.views.input.scheme import ALONE
from models.config import POSITIONS
from tests import apps
from tests.apps import said, views
from tests.grids import grid
from tests.tiny import save_model
from tests.views.drawing import long_model, press, put_state, sent

VIEWS = ("Scheme", "Permutation", "Length extrapolation", "Doubled exponent")
ORDER, LONGER = VIEWS[1:3]
KEYS = ("", "other_")

pytestmark = pytest.mark.usefixtures("small_models")
page = partial(apps.page, "input/positions", model="letters")


@grid("scheme, view", POSITIONS, VIEWS)
def test_a_model_has_every_view_of_its_own_scheme(scheme: str, view: str, own_models: Path) -> None:
    """Also where another model was chosen before."""
    save_model(own_models, "before", positions="alibi")
    save_model(own_models, scheme, positions=scheme)
    at = page(model="before", lab=view)
    apps.run(at.selectbox(key="model").set_value(scheme))
    assert "This is the chosen model's own scheme." in said(at)
    assert at.segmented_control(key="scheme").options[0] == SCHEMES[scheme]
    assert "no such trained positions" not in said(at)


def test_trained_positions_of_another_model_are_a_click_away(own_models: Path) -> None:
    save_model(own_models, "plain")
    at = page(model="plain", scheme="Learned")
    assert "No other model here has them either: train one" in said(at)
    marked = "*taught* $x$ :smile:"
    for name in ("taught", marked):
        save_model(own_models, name, positions="learned")
    at = page(model="plain", scheme="Learned", lab=ORDER)
    assert {"with_taught", f"with_{marked}"} <= {button.key for button in at.button}
    at = page(model="plain", scheme="Learned")
    assert f"Shown for {literal(marked)}, not for " in said(at)
    assert at.button(key=f"with_{marked}").label == f"Open {literal(marked)}"
    press(at, f"with_{marked}")
    assert at.selectbox(key="model").value == marked
    assert "This is the chosen model's own scheme." in said(at)
    assert "positions_table" in views(at)


PAIRS = [*combinations(SCHEMES, 2)]
HALF = [pytest.param(pair, marks=pytest.mark.thorough) for pair in PAIRS[1::2]]
HAS_TABLE = {"sinusoidal", "learned", "rotary"}


@pytest.mark.parametrize("schemes", [*PAIRS[::2], *HALF])
def test_two_schemes_have_one_size_and_scale(schemes: tuple[str, str], own_models: Path) -> None:
    save_model(own_models, "plain", d_model=32)
    save_model(own_models, "taught", positions="learned")
    first, second = (SCHEMES[scheme] for scheme in schemes)
    at = page(model="plain", scheme=first, other_scheme=second)
    count = 24 if "learned" in schemes else 48
    assert f"The first {count} positions are shown" in said(at)
    assert all(EXPLANATIONS[scheme] in said(at) for scheme in schemes)
    sides = [*zip(KEYS, schemes, strict=True)]
    tables = [f"{key}positions_table" for key, scheme in sides if scheme in HAS_TABLE]
    products = [f"{key}products" for key, scheme in sides if scheme != "none"]
    assert views(at) == {*tables, *products}
    for keys in (tables, products):
        found = [sent(at, key)[0] for key in keys]
        assert {each["shape"][0] for each in found} <= {count}
        by_unit = {(each["words"]["unit"], each["top"]) for each in found}
        assert len(by_unit) == len({unit for unit, _ in by_unit}), "one scale for a unit"
    if len(tables) == 2:
        found = [sent(at, key)[0] for key in tables]
        shapes = [[len(each["rows"]), len(each["columns"])] for each in found]
        for each in found:  # so the browser draws both in cells of one size
            laid = [[len(o["rows"]), len(o["columns"])] for o in each["beside"]]
            assert sorted(laid) == sorted(shapes)
    if schemes == ("sinusoidal", "learned"):
        assert shapes == [[24, 16], [24, 16]], "sinusoids as wide as the learned table"
        assert "They are 16 wide, as is the learned table beside them." in said(at)


def test_two_schemes_are_compared_by_cosine_and_none_stands_beside_itself() -> None:
    at = page(other_scheme="Rotary")
    for key in KEYS:
        assert sent(at, f"{key}products")[0]["words"]["unit"] == "cosine similarity"
        assert sent(at, f"{key}products")[0]["top"] == pytest.approx(1.0)
    assert "The cosine similarity follows from the distance alone." in said(at)
    apps.run(at.segmented_control(key="similar_by").set_value("Dot product"))
    assert sent(at, "other_products")[0]["words"]["unit"] == "product"
    apps.run(at.segmented_control(key="scheme").set_value("Rotary"))
    assert at.selectbox(key="other_scheme").value == ALONE
    assert views(at) == {"positions_table", "products"}
    assert "other_products" not in views(page(other_scheme="Rotary", lab=ORDER))


def test_a_shipped_model_has_learned_positions(shipped_models: None) -> None:
    weights = load_file(SHIPPED / "induction-learned" / "model.safetensors")
    table = weights["decoder.positions.table.weight"].numpy()
    beyond = "the learned table has 32 rows, so there is no vector for position 32 or any later one"
    for model in ("shakespeare", "translation", "induction-learned"):
        at = page(model=model, scheme="Learned", other_scheme="Sinusoidal")
        assert beyond in said(at)
        other = "Shown for Continue a repeat"
        assert (other in said(at)) == (model != "induction-learned")
        header, planes = sent(at, "positions_table")
        codes = wire.decode(wire.codes_of(planes["values"], header["shape"]), header)
        step = (header["high"] - header["low"]) / header["steps"]
        np.testing.assert_allclose(codes, table, atol=1.01 * step)
        assert "Two pairs at the same distance differ by up to" in said(at)
    at = page(model="induction-learned", lab=LONGER)
    assert "The table has 32 rows, so 32 tokens fit: position 32 has no vector" in said(at)


def test_the_figures_of_two_schemes_are_exported_by_their_names(shipped_models: None) -> None:
    at = page(model="induction", other_scheme="Learned")
    put_state(at, export=True)
    titles = [each.partition(" · ")[2] for each in at.selectbox(key="export_figure").options]
    sides = "Sinusoidal: ", "Learned (induction-learned): "
    kinds = ["position vectors", "cosine similarity of two positions"]
    kinds += ["cosine similarity by distance", "pair 0 of dimensions"]
    kinds += ["clock hands of 3 pairs at position 3"]
    assert titles == [f"{side}{kind}" for kind in kinds for side in sides]


def test_an_order_that_is_none_is_one_sentence_with_the_way_out() -> None:
    at = page(lab=ORDER, order_of="Custom order")
    as_it_was = "The order is the same, so nothing changes."
    assert as_it_was in said(at)
    at.text_input(key="text").set_value("the cat and the hat").run()
    assert as_it_was in said(at), "an order nobody chose follows the text"
    for places in ["", "0 0 1", "a b c", "0 1 2 3 99999", "-1 0"]:
        apps.run(at.text_input(key="places").set_value(places))
        assert "name each position from 0 to" in said(at), places


def test_only_lengths_that_run_are_offered(
    own_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.views.input.changed_positions.MAX_EXTRAPOLATED", 128)
    left_out = "Texts of more than 128 tokens are not run here, so 1.5 × and 2 × are not offered."
    for most, times, longest, is_left_out in (
        (96, ["1.25 ×"], 120, True),
        (64, ["1.25 ×", "1.5 ×", "2 ×"], 128, False),
    ):
        long_model(own_models, f"reads {most}", positions="rotary", max_len=most)
        at = page(model=f"reads {most}", lab=LONGER)
        assert at.segmented_control(key="times").options == times
        assert f"repeated to {longest} tokens, in one forward pass" in said(at)
        assert (left_out in said(at)) is is_left_out


def test_the_change_of_another_order_is_that_of_its_pass() -> None:
    at = page(text="the cat and the hat", lab=ORDER, scheme="None")
    opened = opened_model.open_model("letters")
    found = forward_pass.run_text(opened, "the cat and the hat")

    def says_the_change_of(order: list[int]) -> None:
        change = three(100 * permuted(opened, found, order, "none").largest)
        assert f"the final vectors change by up to {change} %" in said(at)

    at.button_group(key="order_of").set_value("Swap two tokens").run()
    at.selectbox(key="swap_one").select(2).run()
    at.selectbox(key="swap_other").select(5).run()
    says_the_change_of(swapped_order(found, 2, 5))
    at.button_group(key="order_of").set_value("Custom order").run()
    own = [0, *range(len(found.tokens) - 1, 0, -1)]
    at.text_input(key="places").set_value(" ".join(map(str, own))).run()
    says_the_change_of(own)


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
    places = Permutation(found, found, tuple(order)).places
    assert [order[place] for place in places] == list(range(50_000))
