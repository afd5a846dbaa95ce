"""The view Steering of the page Circuits, without a browser: its numbers, its texts, its button."""

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.catalog.opened_model import open_model
from explorer.circuits.outcome import LOGIT_DIFFERENCE
from explorer.circuits.steering import (
    STRENGTHS,
    over_places,
    over_strengths,
    steered_values,
    steering_of,
)
from explorer.circuits.text_pairs import TextPair, question_of
from explorer.inference.core_edits import steering_direction
from explorer.inference.steered_text import steered_text
from explorer.interventions import address_text
from explorer.text.number_format import three
from tests import apps
from tests.apps import said
from tests.views.drawing import press

PAIR = TextPair("the cat and the hat", "the hat and the cat")

pytestmark = pytest.mark.usefixtures("small_models")


def page(**address: str) -> AppTest:
    asked = {
        "model": "letters",
        "text": PAIR.clean,
        "corrupted": PAIR.corrupted,
        "circuit_view": "Steering",
        "layer": "1",
        "head": "2",
        "steer_strength": "2.5",
        **address,
    }
    return apps.page("experiments/circuits", **asked)


def drawn(at: AppTest, table: str, chart: int = 0) -> list[dict[str, Any]]:
    """The rows of a table of one of the two charts."""
    layers = json.loads(at.get("vega_lite_chart")[chart].proto.spec)["layer"]
    (rows,) = (each["data"]["values"] for each in layers if each["data"]["name"] == table)
    return list(rows)


@pytest.mark.parametrize("head", [None, 2])
def test_the_charts_and_the_texts_are_those_of_the_direction(head: int | None) -> None:
    at = page(steer_by="Difference of two texts" if head is None else "Head output")
    opened = open_model("letters")
    question = question_of(opened, [PAIR], LOGIT_DIFFERENCE)
    steer = steering_of(question, "decoder.self_attn", 1, head, 2.5)
    config = opened.config
    places = over_places(opened, steer, config.n_layers, config.n_heads)
    at_place = [each.layer if head is None else each.head for each in places]
    second = ("layer", places, at_place, 1) if head is None else ("head", places, at_place, 2)
    for chart, (over, steers, where, chosen) in enumerate(
        (("strength", over_strengths(steer), list(STRENGTHS), 2.5), second)
    ):
        found = steered_values(opened, question, steers)
        for which, values in (("clean", found.clean), ("corrupted", found.corrupted)):
            shown = [row for row in drawn(at, "curves", chart) if row["which"] == which]
            assert [row[over] for row in shown] == where
            assert [row["value"] for row in shown] == pytest.approx(values[0].tolist(), abs=1e-5)
        assert drawn(at, "chosen", chart) == [{over: chosen}]
    words = said(at)
    norm = three(float(steering_direction(opened, steer).norm()))
    assert f"The direction has norm {norm} and the residual stream there" in words
    for added in (None, steer):
        assert steered_text(opened, PAIR.corrupted, added).strip() in words


def test_the_direction_becomes_an_intervention_that_the_link_holds() -> None:
    at = press(page(), "add_steering")
    address = str(at.text_input(key="edits").value)
    words = "Layer 1: 2.50 × (“the cat and the hat” − “the hat and the cat”) added"
    assert words in said(at)
    other = apps.page("experiments/interventions", model="letters", edits=address)
    assert words in said(other)
    assert "not apply" not in said(other)


def test_a_prompt_of_one_s_own_is_written_on_and_a_wrong_one_refused() -> None:
    at = page(steer_prompt="the cat")
    assert steered_text(open_model("letters"), "the cat", None).strip() in said(at)
    at.text_input(key="steer_prompt").set_value("cat " * 60).run()
    assert not at.exception
    assert "tokens long and this model reads at most" in said(at)
    at.text_input(key="steer_prompt").set_value(" ").run()
    assert "There is nothing to continue: type a prompt." in said(at)


def test_a_model_that_writes_nothing_still_has_the_curve() -> None:
    at = page(model="reviews", text="the cat", corrupted="the dog", layer="0", head="0")
    assert "This model does not generate text" in said(at)
    assert drawn(at, "curves")


def test_texts_that_the_address_cannot_hold_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not page().button(key="add_steering").disabled
    monkeypatch.setattr(address_text, "MAX_CHARACTERS", 60)
    at = page()
    assert at.button(key="add_steering").disabled
    assert "This intervention takes 65 characters in the address" in said(at)


def test_many_pairs_are_shown_with_their_spread_and_are_too_many_for_a_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("EXPLORER_CHECKPOINTS")
    how = {"model": "induction", "text": "abcab", "pair_source": "Induction", "head": "0"}
    at = page(**how, pair_count="9", corrupted="")
    assert "mean and standard deviation over 9 pairs" in said(at)
    assert "mean over 9 pairs), added to the residual stream" in said(at)
    assert all(row["least"] < row["most"] for row in drawn(at, "band"))
    assert at.button(key="add_steering").disabled
    assert "at most 16 texts in all" in said(at)
    assert not page(**how, pair_count="4", corrupted="").button(key="add_steering").disabled
