"""The picture of the pass on the Overview page: what the address holds in it, and what it tells."""

import os
import re
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis import information_flow
from explorer.app.session import SESSION_KEY, Session
from explorer.catalog import opened_model
from explorer.charts.figure_data import TableData
from explorer.inference.forward_pass import run_text
from explorer.text.number_format import percent
from explorer.text.token_labels import texts
from explorer.views.overview import pass_picture
from explorer.views.overview.map_choices import LEAST_USUAL
from tests import apps
from tests.apps import exported, said, views
from tests.tiny import save_model
from tests.views.drawing import handed, long_model, notes, pasted, put_state, run, sent

pytestmark = pytest.mark.usefixtures("small_models")
NOTHING = [-1] * 5
TEXT = "the black cat sleeps"


def page(model: str = "translation", **address: str) -> AppTest:
    return apps.page("overview/overview", model=model, **address)


def choice(at: AppTest) -> list[float]:
    """What the picture was told to hold."""
    return [*handed(at, "pass_map")]


def header(at: AppTest) -> dict[str, Any]:
    return sent(at, "pass_map")[0]


def kept(at: AppTest) -> dict[str, Any]:
    """What a link would repeat of the picture."""
    names = ("answer", "traced", "least", "block", "pinned")
    return {name: at.query_params[name] for name in names if name in at.query_params}


def test_a_link_repeats_what_is_held() -> None:
    usual = header(page(text=TEXT))["asked"]
    assert choice(page(text=TEXT)) == [usual, -1, -1, LEAST_USUAL, -1, -1, *NOTHING]
    for address, held in [
        ({"answer": "1"}, [1, -1, -1, LEAST_USUAL, -1, -1]),
        ({"traced": "e3"}, [usual, 0, 3, LEAST_USUAL, -1, -1]),
        ({"traced": "d0"}, [usual, 1, 0, LEAST_USUAL, -1, -1]),
        ({"least": "0.02"}, [usual, -1, -1, 0.02, -1, -1]),
        ({"least": "0.5", "block": "d0"}, [usual, -1, -1, 0.5, 1, 0]),
        ({"answer": "1", "traced": "e2", "least": "0.001", "block": "e0"}, [1, 0, 2, 0.001, 0, 0]),
    ]:
        at = page(text=TEXT, **address)
        assert (choice(at), notes(at)) == ([*held, *NOTHING], [])
        assert kept(at) == address


def test_the_edge_is_the_chosen_head_s_pinned_cell() -> None:
    at = page(text=TEXT, part="Cross", head="1", pinned="q1k2")
    assert not any(header(at)["appends"]), "its answers are no part of the text"
    assert choice(at)[6:] == [2, 0, 1, 2, 1]
    _, *cell, first, why = handed(at, "pass_map-why")
    assert cell == ["decoder.cross_attn", 0, 1, 1, 2]
    forward = run_text(opened_model.open_model("translation"), TEXT)
    assert first == percent(float(forward.weights(cell[0], 0, 1)[1, 2]))
    assert header(at)["stacks"][1]["writes"] == texts(forward.rows(cell[0]))
    assert why.endswith("add up to this difference, and so do the key's.")
    assert choice(page(text=TEXT, part="Cross", pinned="q1"))[6:] == NOTHING, "a token is no edge"
    assert choice(page(text=TEXT, part="Encoder", pinned="q1k99"))[6:] == NOTHING


HOSTILE = {
    "answer": ["-1", "99", "9" * 12, "1e0", "x", "<b>1</b>", "٣", "1.0", "+1"],
    "traced": ["d99", "e-1", "x0", "d", "0", "decoder0", "e0;d0", "d" + "9" * 12, "<img src=x>"],
    "least": ["0", "0.3", "nan", "inf", "-0.5", "1", "0.0050", "x" * 900],
    "block": ["d9", "e1", "d-1", "D0", "b0", "e" + "1" * 9, "[x](http://x)"],
}


def test_what_does_not_exist_is_said_and_left_out() -> None:
    """All four at once, in as many addresses as the longest list has."""
    for asked in zip_longest(*HOSTILE.values()):
        wrong = {name: text for name, text in zip(HOSTILE, asked, strict=True) if text is not None}
        at = page(text=TEXT, **wrong)
        told = [note.partition(" cannot be “")[0] for note in notes(at)]
        assert sorted(told) == sorted(f"“{name}”" for name in wrong), wrong
        assert choice(at) == [header(at)["asked"], -1, -1, LEAST_USUAL, -1, -1, *NOTHING]
        assert not {*wrong} & {*kept(at)}
        assert all("x.png" not in prose.value for prose in at.markdown)


def test_what_was_held_does_not_follow_into_a_text_without_it() -> None:
    at = page(text=TEXT, answer="3", traced="e4", block="d0")
    assert choice(at)[:3] == [3, 0, 4]
    apps.run(at.text_input(key="text").set_value("the cat"))
    assert choice(at)[1:3] == [-1, -1]
    assert choice(at)[4:6] == [1, 0], "the layer is there still"
    apps.run(at.selectbox(key="model").set_value("reverse"))
    assert choice(at)[4:6] == [-1, -1]


def holding(value: object) -> None:
    """A page on which the picture tells this."""
    import streamlit as st

    from explorer.app.context import page_context
    from explorer.views.overview.map_choices import select_reported
    from explorer.views.overview.pass_picture import picture_of

    st.session_state.update(text="the black cat sleeps", model="translation")
    context = page_context()
    select_reported(value, picture_of(context.opened, context.forward), 0)


def told(value: Any) -> tuple[AppTest, Session]:
    at = apps.run(AppTest.from_function(holding, args=(value,), default_timeout=60))
    return at, at.session_state[SESSION_KEY]


def test_what_is_told_is_in_the_address_from_then_on() -> None:
    at, session = told([2, 0, 3, 0.05, 1, 0, 2, 0, 1, 2, 1])
    assert session.persistent["answer"] == {"answer": "2"}
    assert session.persistent["map"] == {"traced": "e3", "least": "0.05", "block": "d0"}
    assert session.persistent["pinned"] == {"pinned": "q1k2"}
    chosen = [at.session_state[name] for name in ("part", "layer", "head")]
    assert chosen == ["decoder.cross_attn", 0, 1]
    _, session = told([0, -1, -1, LEAST_USUAL, -1, -1, *NOTHING])
    assert session.persistent["map"] == session.persistent["answer"] == {}


def test_anything_else_that_is_told_changes_nothing() -> None:
    right = [2, 0, 3, 0.05, 1, 0, 2, 0, 1, 2, 1]
    hostile: list[Any] = [[True, *right[1:]], right[:-1], [*right, 0], [*map(str, right)]]
    for value in (None, 3, "x", {}, [], *hostile):
        _, session = told(value)
        assert session.persistent.keys() <= {"pinned"}, value
    names = ["answer", "traced", "traced", "least", "block", "block"]
    for at, wrong in [(0, 99), (0, -1), (0, 1.5), (2, 99), (1, 7), (3, 0.3), (4, 2), (5, 1)]:
        _, session = told([*right[:at], wrong, *right[at + 1 :]])
        kept = {**session.persistent["answer"], **session.persistent["map"]}
        assert {*kept, "pinned"} == {*names, "pinned"} - {names[at]}, (at, wrong)
    for at, wrong in [(6, 3), (6, -2), (7, 1), (8, 99), (9, 99), (10, 2), (9, -1), (8, 0.5)]:
        state, session = told([*right[:at], wrong, *right[at + 1 :]])
        assert "part" not in state.session_state, (at, wrong)
        assert not session.persistent.get("pinned", {}).get("pinned"), (at, wrong)
    for at in range(len(right)):
        odd = (float("nan"), float("inf"), 1e300)[at % 3]
        told([*right[:at], odd, *right[at + 1 :]])


def test_a_class_is_one_answer_and_is_read_from_what_is_pooled() -> None:
    asked = header(page("reviews"))
    (answer,) = asked["answers"]
    assert (asked["count"], asked["behind"]) == (1, "Class probabilities")
    assert (asked["hasAnswers"], asked["hasLens"], any(asked["appends"])) == (True, False, False)
    assert {label for label, _ in answer[2]} == {"negative", "positive"}
    assert sum(p for _, p in answer[2]) == pytest.approx(1)


def test_what_comes_behind_are_all_answers_and_the_lens_of_every_layer() -> None:
    """Once the browser asks for them, in a run that draws nothing else."""
    at = page("letters")
    asked, (known,) = header(at), header(at)["answers"]
    assert any(asked["appends"])
    assert asked["hasLens"] is True
    assert not any("late" in str(each.key) for each in at.get("bidi_component"))
    put_state(at, **{"pass_map-ask": {"asks": "another"}})
    assert not any("late" in str(each.key) for each in at.get("bidi_component"))
    put_state(at, **{"pass_map-ask": {"asks": asked["of"]}})
    of, first, answers = handed(at, "pass_map-late-answers")
    tokens = asked["stacks"][-1]["tokens"]
    assert (of, first, len(answers)) == (asked["of"], -1, len(tokens))
    label, options = answers[known[0]]
    assert label == known[1]
    assert dict(options) == pytest.approx(dict(known[2]), rel=1e-5)
    of, first, rows = handed(at, "pass_map-late-0")
    assert (of, first, [len(row) for row in rows]) == (asked["of"], 0, [len(tokens)] * 2)
    for (word, p), (label, options) in zip(rows[-1], answers, strict=True):
        assert (word, p) == (label, pytest.approx(options[0][1], rel=1e-5))


def test_without_a_head_are_no_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(tmp_path, "bare", None, "a cat", kind="encoder", head="none")
    save_model(tmp_path, "plain", d_ff=0, n_layers=2)
    save_model(tmp_path, "beside", parallel=True)
    monkeypatch.setenv("EXPLORER_MODELS", str(tmp_path))
    at = page("bare")
    asked = header(at)
    assert (asked["hasAnswers"], asked["answers"], asked["hasLens"]) == (False, [], False)
    assert asked["count"] == len(asked["stacks"][0]["tokens"])
    assert choice(page("bare", answer="1"))[0] == 1
    assert "decoder.mlp" not in sent(page("plain"), "pass_map")[1]
    assert header(page("beside"))["stacks"][0]["parallel"] is True


def test_too_long_a_text_says_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long_model(tmp_path, "long")
    monkeypatch.setenv("EXPLORER_MODELS", os.fspath(tmp_path))
    monkeypatch.setattr(information_flow, "MOST_WORK", 2 * 16 * 10**2)
    at = page("long", text="abc" * 20)
    assert "pass_map" not in views(at)
    assert "miniature" not in {each.key for each in at.get("bidi_component")}
    assert "start_head" in views(at), "the head has its picture"
    (sentence,) = (line for line in said(at).splitlines() if "picture of the pass" in line)
    assert re.search("has 6[0-2]", sentence)
    assert sentence.endswith("shorten it, or look at the page Attention maps.")
    assert "pass_map" in views(page("long", text="abc"))
    run(pasted(at), tmp_path)


def test_the_edges_are_exported_as_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    at = page("letters", least="0.02")
    asked = header(at)["asked"]
    opened = opened_model.open_model("letters")
    forward = run_text(opened, opened.example)
    flow = information_flow.information_flow(forward)
    edges = information_flow.route(flow, flow.starts[asked]).edges["decoder.self_attn"]
    table: Any = exported(at, monkeypatch)
    assert isinstance(table, TableData)
    answer = pass_picture.all_answers(opened, forward)[asked]
    assert table.title.endswith(f"“{answer.label}”: probability {answer.options[0][1]:.3g}")
    strongest = edges[edges >= 0.02].sort(descending=True).values
    assert table.columns["importance"] == pytest.approx(strongest.tolist(), rel=1e-5)
    where = zip(*(table.columns[name] for name in ("layer", "query", "key")), strict=True)
    for value, (layer, query, key) in zip(strongest, where, strict=True):
        q, k = (int(str(label).split(" ")[0]) for label in (query, key))
        assert float(edges[layer, q, k]) == pytest.approx(float(value), rel=1e-5)
