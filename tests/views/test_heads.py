"""The Heads page without a browser: its ways out, its bounds, and what it leaves out."""

import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch import Tensor

from explorer.analysis import rollout
from explorer.analysis.head_programs import measure_programs, read_lines
from explorer.app.session import SESSION_KEY
from explorer.catalog.opened_model import open_model
from explorer.components.mounting import PageViews
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.address_text import from_address
from explorer.interventions.edits import ReplaceByProgram
from explorer.text.number_format import three
from tests import apps
from tests.apps import said, views
from tests.views.drawing import press, sent

pytestmark = pytest.mark.usefixtures("small_models")


def page(**address: str) -> AppTest:
    return apps.page("attention/heads", **address)


def test_cross_attention_is_no_stack_and_there_is_a_way_out() -> None:
    at = page(side="Rollout", model="translation", part="Cross")
    assert "Rollout and flow follow the residual stream of one stack" in said(at)
    assert "rollout" in views(press(at, "follow_Encoder"))


def test_of_fully_masked_rows_there_is_no_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(forward: ForwardPass, part: str, layer: int = 0) -> Tensor:
        return torch.zeros(len(forward.rows(part)), len(forward.columns(part)), dtype=torch.bool)

    monkeypatch.setattr(ForwardPass, "mask", nothing)
    for side in ["Finder", "Similarity"]:
        at = page(side=side, model="letters", text="the cat that sat")
        assert "Every row of this attention is fully masked" in said(at)


def test_the_table_has_the_scale_of_its_metric() -> None:
    for metric, top in (("Previous-token score", 1.0), ("Mean distance", None)):
        header, _ = sent(page(model="letters", metric=metric), "heads_table")
        assert (header["high"] == top) is (top is not None)


def test_a_token_that_another_sentence_does_not_reach_is_let_go() -> None:
    at = page(model="reverse", side="Flow", flow_to="3 · 4")
    assert at.selectbox(key="flow_to").value == 3
    apps.run(at.text_input(key="text").set_value("12"))
    box = at.selectbox(key="flow_to")
    assert box.value == len(box.options) - 1, "the last token"


def test_what_is_said_of_flows_is_computed_from_them() -> None:
    """Through one layer they are a row of rollout and sum to 1; through two they need not."""
    address = {"model": "letters", "side": "Flow", "text": "that cat"}
    for through, is_one in (("0", True), ("1", False)):
        at = page(**address, through=through)
        (figure,) = at.session_state[SESSION_KEY].state(PageViews).drawn["flow"].figures()
        flows = figure.values[0]
        assert (three(float(flows.sum())) == "1.00") is is_one
        numbers = three(float(flows.sum())), three(float(flows.max()))
        assert f"here they sum to {numbers[0]}, and the largest is {numbers[1]}." in said(at)
        assert f"over the heads of layer {through} alone" in said(at)


def test_a_flow_is_bounded_by_its_edges_times_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two causal layers: n edges below the last token, then n (n + 1) / 2, from n inputs."""
    address = {"model": "letters", "side": "Flow", "text": "cat"}
    tokens = len(page(**address).selectbox(key="flow_to").options)
    steps = (tokens + tokens * (tokens + 1) // 2) * tokens
    monkeypatch.setattr(rollout, "STEPS_SOLVED", steps - 1)
    assert "take too long to solve" in said(page(**address))
    monkeypatch.setattr(rollout, "STEPS_SOLVED", steps)
    assert "flow" in views(page(**address)), "a refusal is not kept"


TEXTS = "the cat that sat\nthat hat and that cat\nthe hat the cat"


def test_programs_are_said_with_their_overlap_and_replace_a_head_in_a_link() -> None:
    address = {"model": "letters", "side": "Programs", "layer": "1", "head": "2"}
    at = page(**address, program_lines=TEXTS, head_program="key is first or self")
    lines = read_lines(open_model("letters"), TEXTS.splitlines())
    heads = measure_programs(open_model("letters"), lines, ["key is first or self"])
    assert heads[6].in_words in said(at)
    assert "2 lines are fitted, 1 scored" in said(at)
    assert "Your program is in the mixtures of" in said(at)
    header, _ = sent(at, "program_overlaps")
    assert header["high"] == 1.0
    at = press(at, "replace_map")
    history, _ = from_address(str(at.text_input(key="edits").value))
    mixture = tuple((name, round(share, 3)) for name, share in heads[6].mixture)
    assert history.active == (ReplaceByProgram("decoder.self_attn", 1, 2, mixture),)
    assert "map replaced by" in said(at)


def test_programs_say_what_they_cannot_describe() -> None:
    for address, why in (
        ({"program_lines": "the cat sat\na"}, "Line 2 has"),
        ({"program_lines": "the cat sat"}, "Give at least two lines"),
        ({"head_program": "key is blue"}, "“key is blue” is no predicate"),
        ({"model": "translation", "part": "Cross"}, "choose Encoder under Attention"),
        ({"model": "reviews"}, "This model predicts no next token"),
    ):
        assert why in said(page(**{"model": "letters", "side": "Programs", **address}))
