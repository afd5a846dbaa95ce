"""The Heads page without a browser: every side of every kind of model, and what cannot be drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch import Tensor

from explorer import head_table
from explorer.analysis import rollout, similarity
from explorer.bench import mixing
from explorer.reading import Reading
from explorer.text import word_tokenizer
from explorer.text.special import DECODER
from tests import apps
from tests.apps import said, views
from tests.grids import grid
from tests.shelf import NAMES, WORDS, put

SIDES = ("Finder", "Likeness", "Rollout", "Flow")
VIEWS = {
    "Finder": {"best_heads", "heads_table", "found_head"},
    "Likeness": {"nearest_heads", "likeness"},
    "Rollout": {"rollout"},
    "Flow": {"flow"},
}


pytestmark = pytest.mark.usefixtures("small_models")


def page(**address: str) -> AppTest:
    return apps.page("look/heads", **address)


@grid("model, side", NAMES, SIDES)
def test_every_side_of_every_kind_of_model(side: str, model: str) -> None:
    part = {"part": "Encoder"} if model == "translation" else {}
    assert VIEWS[side] <= views(page(side=side, model=model, **part))


@grid("side, part", ["Finder", "Likeness"], ["Decoder", "Cross"])
def test_heads_of_a_decoder_and_of_cross_attention(side: str, part: str) -> None:
    assert VIEWS[side] <= views(page(side=side, model="translation", part=part))


def test_cross_attention_is_no_stack_and_there_is_a_way_out(subtests: pytest.Subtests) -> None:
    for side in ["Rollout", "Flow"]:
        with subtests.test(side=side):
            at = page(side=side, model="translation", part="Cross")
            assert "Cross-attention leads from one stack into another" in said(at)
            at.button(key="follow_Encoder").click().run()
            assert not at.exception
            assert VIEWS[side] <= views(at)


def test_one_token(subtests: pytest.Subtests) -> None:
    for side in SIDES:
        with subtests.test(side=side):
            at = page(side=side, model="reverse", text="7")
            assert VIEWS[side] <= views(at)


def test_a_single_head_has_nothing_to_be_compared_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = word_tokenizer(WORDS, DECODER)
    put(tmp_path / "one", "lone", words, "the cat", kind="decoder", n_heads=1)
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "one"))
    assert "has a single head" in said(page(side="Likeness", model="lone"))
    assert "1 of 1 by previous" in said(page(side="Finder", model="lone"))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The values of what Rollout and Flow draw of a pass in which nobody may see anything."""

    def nothing(reading: Reading, part: str) -> Tensor:
        return torch.zeros(len(reading.rows(part)), len(reading.columns(part)))

    found: list[Tensor] = []
    monkeypatch.setattr(Reading, "mask", lambda self, part, layer=0: nothing(self, part).bool())
    monkeypatch.setattr(Reading, "weights", lambda self, part, layer, head: nothing(self, part))
    monkeypatch.setattr(
        Reading,
        "some_heads",
        lambda self, part, layer: iter([nothing(self, part).expand(self.part(part).heads, -1, -1)]),
    )
    monkeypatch.setattr(mixing, "matrix", lambda values, *_, **how: found.append(values))
    return found


@pytest.mark.parametrize("side", ["Finder", "Likeness"])
@pytest.mark.usefixtures("drawn")
def test_of_rows_that_see_nothing_there_is_no_number(side: str) -> None:
    at = page(side=side, model="letters", text="the cat that sat")
    assert "No row of this attention sees anything" in said(at)


def test_rows_that_see_nothing_stay_what_they_are(drawn: list[Tensor]) -> None:
    page(side="Rollout", model="letters", text="that cat sat there")
    (rolled,) = drawn
    assert torch.equal(rolled, torch.eye(len(rolled), dtype=rolled.dtype))
    page(side="Flow", model="letters", text="that cat sat there")
    flow, share, weight = drawn[-1]
    assert torch.equal(flow, share)
    assert torch.equal(share, rolled[-1])
    assert not weight.any()


def test_what_an_address_asks_for_in_vain_is_said(subtests: pytest.Subtests) -> None:
    for address, sentence in [
        ({"side": "Backside"}, "“Side” has no “Backside” here; showing Finder."),
        ({"metric": "Wisdom"}, "“Metric” has no “Wisdom” here; showing Previous."),
        ({"best": "7"}, "“Shown” has no “7” here; showing 6."),
        ({"best_is": "Odd"}, "“Best is” has no “Odd” here; showing Highest."),
        ({"side": "Likeness", "arranged": "x"}, "“Arranged” has no “x” here; showing By layer."),
        ({"side": "Rollout", "through": "9"}, "“Through layer” has no “9” here; showing 1."),
        ({"side": "Flow", "flow_to": "9 dog"}, "“Token” has no “9 dog” here; showing"),
    ]:
        with subtests.test(address=address):
            assert sentence in said(page(model="letters", **address))


def test_what_was_asked_in_vain_is_said_until_something_else_is_chosen() -> None:
    at = page(model="letters", metric="Wisdom")
    assert "has no “Wisdom” here" in said(at.run())
    at.selectbox(key="metric").set_value("Entropy").run()
    assert "Wisdom" not in said(at)


@pytest.mark.parametrize(("metric", "top"), [("Previous", 1.0), ("Distance", None)])
def test_the_table_has_the_scale_of_its_metric(
    metric: str, top: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tops: list[float | None] = []
    monkeypatch.setattr(head_table, "cells", lambda *_, **how: tops.append(how["top"]))
    page(model="letters", metric=metric)
    assert tops[-1] == top


def test_a_link_repeats_every_choice() -> None:
    at = page(model="letters", metric="Entropy", best_is="Lowest", best="12", layer="1", head="2")
    assert at.selectbox(key="metric").value == "Entropy"
    assert "of 8 by entropy, lowest first" in said(at)


def test_a_token_that_another_sentence_does_not_reach_is_let_go() -> None:
    at = page(model="reverse", side="Flow", flow_to="3 · 4")
    assert at.selectbox(key="flow_to").value == 3
    at.text_input(key="text").set_value("12").run()
    assert not at.exception
    box = at.selectbox(key="flow_to")
    assert box.value == len(box.options) - 1, "the last token"


def test_a_flow_that_takes_too_long_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "STEPS_SOLVED", 1)
    two_layers = {"model": "letters", "side": "Flow", "through": "1"}
    at = page(**two_layers, text="that cat")
    assert "takes too long to wait for" in said(at)
    assert "choose a lower layer or an earlier token" in said(at)
    monkeypatch.setattr(mixing, "CELLS_HELD", 5)
    assert "A flow through up to" in said(page(**two_layers, text="the hat"))
    one_layer = page(model="letters", side="Flow", through="0", text="the hat")
    assert VIEWS["Flow"] <= views(one_layer), "one layer needs no solving"


def test_a_flow_is_bounded_by_its_edges_times_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two causal layers: n edges below the last token, then n (n + 1) / 2, from n inputs."""
    address = {"model": "letters", "side": "Flow", "text": "cat"}
    tokens = len(page(**address).selectbox(key="flow_to").options)
    steps = (tokens + tokens * (tokens + 1) // 2) * tokens
    monkeypatch.setattr(rollout, "STEPS_SOLVED", steps - 1)
    assert "takes too long to wait for" in said(page(**address))
    monkeypatch.setattr(rollout, "STEPS_SOLVED", steps)
    assert VIEWS["Flow"] <= views(page(**address)), "a refusal is not kept"


def test_what_is_left_out_of_long_texts_and_of_many_heads_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(similarity, "CELLS_COMPARED", 400)
    monkeypatch.setattr(similarity, "HEADS_COMPARED", 4)
    at = page(model="letters", side="Likeness", text="the cat and the hat and the cat")
    assert "at even distances" in said(at)
    assert "Of 8 heads those of the layers 1 are drawn." in said(at)
