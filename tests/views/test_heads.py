"""The Heads page without a browser: its ways out, its bounds, and what it leaves out."""

from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import parse_qs

import pytest
import torch
from torch import Tensor

from explorer.analysis import rollout
from explorer.analysis.head_programs import measure_programs, overlaps_of, read_lines
from explorer.analysis.token_attribution import DRAWS, TokenAttribution
from explorer.app import widget_state
from explorer.app.session import SESSION_KEY
from explorer.catalog.opened_model import open_model
from explorer.components.chart import hand_over
from explorer.components.mounting import PageViews
from explorer.inference.forward_pass import ForwardPass
from explorer.interventions.address_text import from_address
from explorer.interventions.edits import ReplaceByProgram
from explorer.text.number_format import three
from explorer.views.attention.token_attribution_view import verdict
from tests import apps
from tests.apps import said, views
from tests.views.drawing import press, sent

pytestmark = pytest.mark.usefixtures("small_models")
page = partial(apps.page, "attention/heads")


@pytest.mark.parametrize(
    ("side", "key", "why"),
    [
        ("Rollout", "rollout", "rollout and flow follow one stack"),
        ("Flow", "flow", "rollout and flow follow one stack"),
        ("Sinks", "sinks", "in cross-attention the keys are another text's"),
        ("Programs", "program_overlaps", "programs describe the stack that reads your text"),
    ],
)
def test_where_a_view_is_of_other_attention_it_shows_that(side: str, key: str, why: str) -> None:
    """The choice stays, until the reader chooses."""
    at = page(side=side, model="translation", part="Cross", head="1")
    sentence = f"Encoder self-attention is shown: {why}."
    assert sentence in said(at)
    assert key in views(at)
    assert at.session_state["part"] == "decoder.cross_attn"
    press(at, "follow_Encoder")
    assert at.session_state["part"] == "encoder.self_attn"
    assert key in views(at)
    assert sentence not in said(at)


@pytest.mark.parametrize(
    ("mask", "sides", "why"),
    [
        (torch.zeros, ["Finder", "Similarity", "Sinks"], "Every row of this attention is fully"),
        (torch.eye, ["Sinks"], "enter a text of at least two tokens"),
    ],
)
def test_where_nothing_is_attended_to_the_page_says_why(
    mask: Callable[[int, int], Tensor], sides: list[str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row has a key, so no metric a value; or each has itself alone, so there is no sink."""

    def masked(forward: ForwardPass, part: str, layer: int = 0) -> Tensor:
        return mask(len(forward.rows(part)), len(forward.columns(part))).bool()

    monkeypatch.setattr(ForwardPass, "mask", masked)
    for side in sides:
        assert why in said(page(side=side, model="letters", text="a hat"))


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
    for words in ("take too long to solve", "Choose a lower layer or an earlier token"):
        assert words in said(page(**address))
    monkeypatch.setattr(rollout, "STEPS_SOLVED", steps)
    assert "flow" in views(page(**address)), "a refusal is not kept"


@pytest.mark.parametrize("sent", [None, [], [7], {"layer": 1}, [{"layer": 1, "head": 0}]])
def test_a_click_on_a_chart_tells_a_mark(monkeypatch: pytest.MonkeyPatch, sent: object) -> None:
    """A browser may send anything else."""
    told: list[Mapping[str, object]] = []
    monkeypatch.setattr(widget_state, "get", lambda *_: {"selection": {"picked": sent}})
    hand_over("map", told.append)
    assert told == ([{"layer": 1, "head": 0}] if sent == [{"layer": 1, "head": 0}] else [])


def test_the_distribution_is_of_the_lines_and_refuses_too_few_cells() -> None:
    address = {"side": "Distribution", "model": "letters"}
    assert "built-in lines" in said(page(**address))
    at = page(**address, own_lines="the cat that sat\nthat cat the cat", decile="1")
    assert "2 of 2 lines of yours" in said(at)
    assert {"decile_0", "decile_1", "decile_2"} <= set(views(at))
    assert "not 3: type longer lines" in said(page(**address, own_lines="a"))


def test_the_verdict_is_about_the_areas() -> None:
    """Areas by hand: (p₀ + p₁) / 4 + (p₁ + p₂) / 4 over two tokens."""
    random = torch.tensor([[0.8, 0.6, 0.2]] * (DRAWS - 1) + [[0.8, 0.2, 0.2]])  # 0.55 and 0.35
    fast, slow = torch.tensor([0.8, 0.1, 0.2]), torch.tensor([0.8, 0.4, 0.2])  # 0.30 and 0.45
    said_of = TokenAttribution({}, (0, 1, 2), {"attention": slow, "rollout": fast}, random, 1.0)
    assert "falls fastest when tokens are deleted by “rollout”: area 0.300" in verdict(said_of)
    assert f"{DRAWS} random orders have 0.350 to 0.550" in verdict(said_of)
    assert f"Attention has 0.450, less than {DRAWS - 1} of them" in verdict(said_of)
    both = TokenAttribution({}, (0, 1, 2), {"attention": slow, "rollout": slow}, random, 1.0)
    assert f"No method beats all {DRAWS} random orders" in verdict(both)
    assert "the best is “attention” and “rollout”: area 0.450" in verdict(both)


def test_a_text_of_one_token_is_not_attributed() -> None:
    assert "at least two tokens" in said(page(side="Attribution", model="letters", text="t"))
    at = page(side="Attribution", model="letters", text="that cat")
    assert "Integrated gradients with 64 steps sum to " in said(at)


def test_the_experiments_are_drawn_with_the_typed_first_token() -> None:
    at = page(side="Sinks", model="letters", text="that cat", first_token="cat")
    (experiments, _) = at.dataframe
    assert "Of 8 heads, 7 have no sink, 1 has a sink that does neither." in said(at)
    assert experiments.value["experiment"][1] == "First token replaced by “cat”"
    assert (experiments.value["loss before"] == experiments.value["loss before"][0]).all()
    at = page(side="Sinks", model="reviews", text="not a cat", first_token="the cat")
    assert "is 2 tokens here" in said(at)
    assert "KL divergence in nats" in at.dataframe[0].value
    assert "at least 3 tokens" in said(page(side="Sinks", model="letters", text="t"))


TEXTS = "the cat that sat\nthat hat and that cat\nthe hat the cat"


def test_programs_are_said_with_their_overlap_and_replace_a_head_in_a_link() -> None:
    address = {"model": "letters", "side": "Programs", "layer": "1", "head": "2"}
    at = page(**address, program_lines=TEXTS, head_program="key is first or self")
    lines = read_lines(open_model("letters"), TEXTS.splitlines())
    heads = measure_programs(open_model("letters"), lines, ["key is first or self"])
    assert heads[6].in_words in said(at)
    assert "2 lines are fitted, 1 scored" in said(at)
    assert "Your program alone overlaps by " in said(at)
    header, _ = sent(at, "program_overlaps")
    assert header["high"] == 1.0
    (link,) = (one.proto for one in at.get("page_link") if "Replace the head" in one.proto.label)
    (edits,) = parse_qs(link.query_string)["edits"]
    history, _ = from_address(edits)
    mixture = tuple((name, round(share, 3)) for name, share in heads[6].mixture)
    assert history.active == (ReplaceByProgram("decoder.self_attn", 1, 2, mixture),)
    at = apps.page("experiments/interventions", model="letters", edits=edits)
    assert "map replaced by" in said(at)


def test_the_map_of_heads_has_overlaps_with_programs() -> None:
    address = {"model": "letters", "side": "Map of heads", "program_lines": TEXTS}
    axes = {"across": "Overlap with its programs", "up": "Overlap with your program"}
    assert "Type a program of your own" in said(page(**address, **axes))
    own = "key is first or self"
    at = page(**address, **axes, head_program=own)
    opened = open_model("letters")
    lines = read_lines(opened, TEXTS.splitlines())
    heads = measure_programs(opened, lines, [own])
    alone = overlaps_of(opened, lines, own)
    (figure,) = at.session_state[SESSION_KEY].state(PageViews).drawn["heads_map"].figures()
    assert figure.columns["x"][:8] == [of.overlap for of in heads]
    assert figure.columns["y"][:8] == alone.flatten().tolist()
    at = page(**{**address, **axes, "model": "translation", "part": "Cross"})
    assert "“Across” has no “Overlap with its programs” here" in said(at)


def test_programs_say_what_they_cannot_describe() -> None:
    for address, why in (
        ({"program_lines": "the cat sat\na"}, "Line 2 has"),
        ({"program_lines": "the cat sat"}, "Give at least two lines"),
        ({"head_program": "key is blue"}, "“blue” is none of them"),
        ({"model": "reviews"}, "This model predicts no next token"),
    ):
        assert why in said(page(**{"model": "letters", "side": "Programs", **address}))
