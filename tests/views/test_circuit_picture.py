"""The picture of a circuit on its page: the model's own numbers, and what the address chooses."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis.attribution_patching import positions_of_edges
from explorer.analysis.circuit_metrics import LOGIT_DIFFERENCE
from explorer.analysis.circuits.circuit_scores import (
    METHODS,
    EdgeScores,
    attributions,
    contrast_of,
    mean_over_pairs,
    scores_of,
)
from explorer.analysis.circuits.text_pairs import Question, TextPair, question_of
from explorer.catalog.opened_model import OpenModel, open_model
from explorer.components.circuit_map import MOST_CIRCUIT_EDGES, drawn_places
from explorer.inference.forward_pass import run_text
from explorer.views.circuits.circuit_view import NO_HEAD_AT_EDGE
from tests import apps
from tests.views.drawing import handed, notes, sent

PAIR = TextPair("the cat and the hat", "the hat and the cat")
METHOD, PATCHED = "EAP", 3

pytestmark = pytest.mark.usefixtures("small_models")


def page(**address: str) -> AppTest:
    asked = {"model": "letters", "text": PAIR.clean, "corrupted": PAIR.corrupted}
    asked |= {"circuit_view": "Circuit", "attributed_by": METHOD, "patched_edges": str(PATCHED)}
    return apps.page("experiments/circuits", **asked | address)


def header(at: AppTest) -> dict[str, Any]:
    return sent(at, "circuit_map")[0]


def edge_scores() -> tuple[OpenModel, Question, EdgeScores]:
    opened = open_model("letters")
    question = question_of(opened, [PAIR], LOGIT_DIFFERENCE)
    return opened, question, scores_of(opened, [*attributions(opened, question, METHODS[METHOD])])


def test_edges_have_their_scores_and_positions_and_attention_joins_these() -> None:
    """Where a head reads and where it writes."""
    shown, (opened, question, scores) = header(page()), edge_scores()
    places = scores.strongest(MOST_CIRCUIT_EDGES)
    exact = [0.0] * PATCHED
    for at, lost in mean_over_pairs(opened, question, places[:PATCHED]):
        exact[at] += lost
    positions = positions_of_edges(contrast_of(opened, question.pairs[0]), places)
    assert shown["every"] == len(scores.order)
    assert len(shown["edges"]) == len(places) == len(positions)
    for at, (edge, place) in enumerate(zip(shown["edges"], places, strict=True)):
        meant = scores.edge(*place)
        assert edge["title"] == meant.title
        estimate, by_patching, _ = edge["scores"]
        assert estimate == pytest.approx(meant.estimate, abs=1e-5)
        assert by_patching == (pytest.approx(exact[at], abs=1e-5) if at < PATCHED else None)
        for token, score in edge["at"]:
            assert score == pytest.approx(float(positions[at, token]), abs=1e-5)
    forward = run_text(opened, PAIR.clean)
    for part, query, key, size in shown["moves"]:
        _, layer, head, *_ = shown["parts"][part]
        weight = forward.weights("decoder.self_attn", layer, head)[query, key]
        of = opened.model.last_stack.blocks[layer].self_attn
        group, wide = opened.config.kv_head(head), of.d_head
        value = forward.trace[f"decoder.{layer}.self_attn.v"][0, group, key]
        written = of.o_proj.weight[:, head * wide :][:, :wide] @ value
        assert size == pytest.approx(float(weight * written.norm()), rel=1e-4)
    joined = {(part, key) for part, _, key, _ in shown["moves"]}
    names = [part[3] for part in shown["parts"]]
    for place, scored in zip(places, positions, strict=True):
        edge = scores.edge(*place)
        if edge.reads in ("k", "v"):
            node = names.index(edge.target.title)
            assert {(node, at) for at in drawn_places(scored)} <= joined, edge.title


def test_a_part_has_its_own_scores_and_the_exact_one_where_it_was_measured() -> None:
    _, _, scores = edge_scores()
    known = {place.kind: at for at, place in enumerate(scores.wiring.columns)}
    page(circuit_view="Heads")
    (embedding,) = (part for part in header(page())["parts"] if part[0] == "embedding")
    assert embedding[4] == pytest.approx(float(scores.writers[known["embedding"]]), abs=1e-5)
    assert embedding[5] is not None, "the view Heads has patched it"


def usual(at: AppTest) -> int:
    """The largest step of the slider up to 40 at which every edge has 2 % of the strongest."""
    sizes = [abs(edge["scores"][0]) for edge in header(at)["edges"]]
    first, *more = header(at)["counts"]
    return max([first, *(each for each in more if each <= 40 and sizes[each - 1] >= sizes[0] / 50)])


def test_a_link_repeats_what_is_drawn_and_what_does_not_exist_is_said_and_left_out() -> None:
    assert handed(page(drawn_edges="20", drawn_part="e3"), "circuit_map") == [20, -1, -1, 3]
    at = page(drawn_part="0.1")
    assert header(at)["counts"][-1] == len(header(at)["edges"])
    assert handed(at, "circuit_map") == [usual(at), 0, 1, -1]
    assert (notes(at), at.query_params["drawn_part"]) == ([], "0.1")
    edges = ["7", "-5", "9" * 12, "<b>5</b>"]
    parts = ["9.9", "e99999", "0.1.2", "<img src=x>"]
    for asked in zip(edges, parts, strict=True):
        at = page(drawn_edges=asked[0], drawn_part=asked[1])
        wrong = [note.partition(" cannot be “")[0] for note in notes(at)]
        assert wrong == ["“drawn_edges”", "“drawn_part”"], asked
        assert handed(at, "circuit_map") == [usual(at), -1, -1, -1]
        assert not {"drawn_edges", "drawn_part"} & {*at.query_params}


def test_a_chosen_edge_opens_with_what_it_carries_and_the_card_of_its_head() -> None:
    at = page()
    assert "card_map" not in apps.views(at)
    titles = [each["title"] for each in header(at)["edges"]]
    of_heads = ["." in title for title in titles]
    for is_shown, number in ((each, of_heads.index(each)) for each in (True, False)):
        at = page(drawn_part=f"e{number}")
        said = [each.value for each in at.markdown]
        assert f"**{titles[number]}**" in said
        assert any(each.startswith("It carries ") for each in said)
        assert ("card_map" in apps.views(at)) is is_shown
        whys = [handed(at, "circuit_map-why")] if "circuit_map-why-choice" in apps.views(at) else []
        assert all(why.endswith("difference, and so do the key's.") for _, why, _ in whys)
        assert len(whys) == is_shown
        assert (NO_HEAD_AT_EDGE in apps.said(at)) is not is_shown
