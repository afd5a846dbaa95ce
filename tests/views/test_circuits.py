"""The page Circuits without a browser: its question, its views, findings, steering and evidence."""

import json
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from explorer.__main__ import main
from explorer.analysis.circuit_metrics import KL, LOGIT_DIFFERENCE
from explorer.analysis.circuits.circuit_scores import METHODS, attributions, scores_of
from explorer.analysis.circuits.finding import Finding, finding_from
from explorer.analysis.circuits.head_scores import head_scores
from explorer.analysis.circuits.pair_templates import make_pairs
from explorer.analysis.circuits.steering import (
    over_places,
    over_strengths,
    steered_text,
    steered_values,
    steering_of,
)
from explorer.analysis.circuits.text_pairs import TextPair, question_of, token_pair
from explorer.analysis.circuits.top_lines import OF_TASK, built_in_lines, built_in_texts
from explorer.analysis.wiring import CircuitNode, Edge, WiringError
from explorer.app.session import SESSION_KEY
from explorer.catalog.opened_model import open_checkpoint, open_model
from explorer.catalog.shipped import SHIPPED
from explorer.components.mounting import PageViews
from explorer.inference.results_cache import forget
from explorer.runs.run import open_folder
from explorer.system import limits
from explorer.system.data_folders import activations_root, runs_root
from explorer.text.number_format import three
from explorer.views.circuits import patching_view
from explorer.views.circuits.circuit_view import composition_in_words, effect_in_words
from explorer.views.circuits.evidence import NOT_SEARCHED
from models.gradients import GradientError
from tests import apps
from tests.apps import said, views
from tests.tiny import trained_run
from tests.views.drawing import pasted, press, put_state, run, sent

PAIR = TextPair("the cat and the hat", "the hat and the cat")
CLEAN, SWAPPED, CORRUPTED = "abcdeabcdeab", "abcdeadceeab", "adcbeadcbeab"
LINES = "the cat and the hat\nthe hat\nand the cat\nthat cat\n"


shipped = partial(apps.page, "experiments/circuits", model="induction")
asks = partial(shipped, circuit_view="Text as evidence", lines_from="Pasted text")
"""The question alone: there is no line to measure."""
page = partial(shipped, model="letters", text=PAIR.clean, corrupted=PAIR.corrupted)


def table(at: AppTest, column: str) -> dict[str, list[Any]]:
    """The table that has this column."""
    (found,) = (frame.value for frame in at.dataframe if column in frame.value)
    return {name: list(found[name]) for name in found}


def tokens(at: AppTest) -> tuple[str, str]:
    """The letters of both texts."""
    header, _ = sent(at, "pair_tokens")
    return "".join(header["labels"][1:]), "".join(header["below"][1:])


def test_a_first_visitor_is_shown_a_question_and_another_sentence_brings_another() -> None:
    at = shipped()
    pair = token_pair(open_model("induction"), TextPair(*tokens(at)), LOGIT_DIFFERENCE)
    assert at.text_input(key="corrupted").value == pair.texts.corrupted
    clean, corrupted = three(pair.clean_value), three(pair.corrupted_value)
    assert (
        f"Score (logit) of “c” minus “a”: {clean} after the clean text "
        f"(above), {corrupted} after the corrupted one (below); the difference is "
    ) in said(at)
    at = asks()
    at.text_input(key="text").set_value("xyzxyzxy").run()
    assert tokens(at)[0] == "xyzxyzxy"
    assert at.text_input(key="corrupted").value == tokens(at)[1] != "xyzxyzxy"
    at.text_input(key="corrupted").set_value("xyzxyzxx")
    apps.run(at.text_input(key="text").set_value("zyxzyxzy"))
    assert tokens(at) == ("zyxzyxzy", "xyzxyzxx"), "what was typed stays"
    both = {"answer_token", "against_token"}
    assert {each.key for each in at.text_input} & both == both
    for metric, keys in {"Loss": {"answer_token"}, KL: set()}.items():
        at.button_group(key="outcome").set_value(metric).run()
        assert {each.key for each in at.text_input} & both == keys


def test_a_template_shows_one_of_its_pairs_and_means_over_all() -> None:
    at = asks(pair_source="Induction", pair_count="3", pair_seed="7", pair_shown="2")
    pairs = make_pairs(open_model("induction"), "Induction", 3, 7).pairs
    assert tokens(at) == (pairs[1].clean, pairs[1].corrupted)
    assert "Mean over 3 pairs: " in said(at)
    press(at, "clean_to_bar")
    assert at.text_input(key="text").value == pairs[1].clean
    assert not any(button.key == "clean_to_bar" for button in at.button)
    apps.run(at.number_input(key="pair_seed").set_value(8))
    assert tokens(at)[0] == make_pairs(open_model("induction"), "Induction", 3, 8).pairs[0].clean


def test_a_table_of_ones_own_is_asked_about() -> None:
    at = asks(pair_source="CSV")
    assert "pair_tokens" not in views(at)
    for name, rows, answer in (
        ("some.csv", "clean,corrupted\nabcabca,acbacba\nxyxyx,xyxyy\n", "Mean over 2 pairs: "),
        ("odd.csv", "abcabca,acbacba\nxyxyx,xyxyx\n", "Line 2 is not a valid pair. Both texts"),
    ):
        apps.run(at.file_uploader(key="pair_table").upload(name, rows.encode(), "text/csv"))
        assert answer in said(at)
        assert "odd" in name or tokens(at) == ("abcabca", "acbacba")


@pytest.mark.usefixtures("small_models")
def test_what_is_long_waits_and_what_was_stopped_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.views.shared.measurement.QUICK", 1)
    forget(open_model("letters"))
    at = press(page(circuit_view="Heads", pair_source="Your two texts"), "begin_attribution")
    assert "Strongest parts" in said(at)
    assert set(table(at, "part")["exact"]) == {""}
    press(at, "begin_exact_parts")
    assert "" not in table(at, "part")["exact"]
    assert "" not in table(page(circuit_view="Heads"), "part")["exact"], "another reader has them"


@pytest.mark.usefixtures("small_models")
def test_what_cannot_be_measured_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    at = page(circuit_view="Heads", attributed_by="EAP", outcome=KL)
    assert "choose EAP-IG" in said(at)
    for name, error in (
        ("wiring_of", WiringError("There are no edges.")),
        ("attribute", GradientError("The gradient is not finite, so it says nothing.")),
    ):
        forget(open_model("letters"))
        with monkeypatch.context() as patch:
            fails = Mock(side_effect=error)
            patch.setattr(f"explorer.analysis.circuits.circuit_scores.{name}", fails)
            assert str(error) in said(page(circuit_view="Circuit"))
            if name == "wiring_of":
                assert table(page(circuit_view="Heads"), "part")["exact"][0] != ""
    forget(open_model("letters"))


@pytest.mark.usefixtures("small_models", "at_the_machine")
def test_every_snapshot_is_asked_the_same_question() -> None:
    made = trained_run(runs_root(), task="induction", steps=1)
    texts = {"text": "abcdabcdab", "corrupted": "abxdabxdab"}
    asked = {**texts, "answer_token": "c", "against_token": "x", "attributed_by": "EAP"}
    at = page(model=made.name, circuit_view="Over training", circuit_step="1", **asked)
    step, folder = made.snapshots()[1]
    opened = open_folder(folder)
    pair = TextPair(texts["text"], texts["corrupted"], "c", "x")
    question = question_of(opened, [pair], LOGIT_DIFFERENCE)
    scores = scores_of(opened, [*attributions(opened, question, METHODS["EAP"])])
    assert f"Strongest edges at step {step}" in said(at)
    shown = table(at, "edge")
    edges = [scores.edge(*place) for place in scores.strongest(len(shown["edge"]))]
    assert shown["edge"] == [edge.title for edge in edges]
    assert shown["estimate"] == [three(edge.estimate) for edge in edges]
    _, printed = run(pasted(at), made.folder)
    of_steps = [line.split()[0] for line in printed if line.split()[0].isdecimal()]
    assert of_steps == [str(step) for step, _ in made.snapshots()]


def test_an_edge_between_heads_says_what_it_carries_and_what_their_weights_say() -> None:
    opened = open_model("induction")
    edge = Edge(CircuitNode("head", 0, 1), CircuitNode("head", 1, 0), "k", 1.25, 0.5, 1.5)
    assert effect_in_words(edge, LOGIT_DIFFERENCE) == (
        "It carries 1.25 ± 0.500 logits of the metric by estimate, 1.50 logits by patching."
    )
    composition = composition_in_words(opened, edge)
    assert composition.startswith("By weights alone, K-composition of 1.0 with 0.1 is ")
    assert " of 2 earlier heads." in composition


def test_the_induction_heads_are_named_and_no_head_for_its_weight_on_the_first_token() -> None:
    opened = open_model("induction")
    for layer in range(2):
        for head in range(2):
            names = head_scores(opened, layer, head).names
            assert any(name.startswith("induction head:") for name in names) == (layer == 1)
            assert not any("first" in name for name in names)


def test_the_grid_begins_where_the_texts_differ_and_a_chosen_cell_is_said() -> None:
    asked = {"text": CLEAN, "corrupted": SWAPPED, "circuit_view": "Causal tracing"}
    at = shipped(**asked, layer="0", patched_at="7 · b / d")
    header, planes = sent(at, "traced_values")
    assert header["rows"][0] == "b / d (7)"
    assert len(header["rows"]) == len(CLEAN) + 1 - 7
    (figure,) = at.session_state[SESSION_KEY].state(PageViews).drawn["traced_values"].figures()
    share = three(float(figure.values[0, 0]))
    same, chosen = "The first 7 tokens are the same in both texts", "Chosen: layer 0, “b / d” (7): "
    for words in (same, " logits (corrupted)", f"{chosen}{share} of it comes back"):
        assert words in said(at)
    assert planes


def test_pairs_of_one_length_are_averaged_and_of_others_one_is_shown() -> None:
    opened = open_checkpoint(SHIPPED / "induction", "induction")

    def averaged(clean: str, corrupted: str) -> int:
        pairs = [TextPair(CLEAN, SWAPPED), TextPair(clean, corrupted)]
        question = question_of(opened, pairs, LOGIT_DIFFERENCE)
        return len(patching_view.pairs_to_average(question, question.pairs[1]))

    assert averaged("edcbaedcbaed", "ebcdaebcdaed") == 2
    assert averaged(f"{CLEAN}c", f"{SWAPPED}c") == 1


steering = partial(page, circuit_view="Steering", layer="1", head="2", steer_strength="2.5")


def rows_of(at: AppTest, mark: str, chart: int) -> list[dict[str, Any]]:
    """The rows of the first layer with this mark, in one of the two charts."""
    layers = json.loads(at.get("vega_lite_chart")[chart].proto.spec)["layer"]
    return next(layer["data"]["values"] for layer in layers if layer["mark"]["type"] == mark)


@pytest.mark.usefixtures("small_models")
@pytest.mark.parametrize("head", [None, 2])
def test_the_charts_are_those_of_the_direction(head: int | None) -> None:
    """The panels compare the curve of the clean text and the steered text."""
    at = steering(steer_by="Difference of two texts" if head is None else "Head output")
    opened = open_model("letters")
    question = question_of(opened, [PAIR], LOGIT_DIFFERENCE)
    steer = steering_of(question, "decoder.self_attn", 1, head, 2.5)
    places = over_places(opened, steer, opened.config.n_layers, opened.config.n_heads)
    over, chosen = ("layer", 1) if head is None else ("head", 2)
    for chart, (name, steers, at_rule) in enumerate(
        (("strength", over_strengths(steer), 2.5), (over, places, chosen))
    ):
        drawn = [row for row in rows_of(at, "line", chart) if row["which"] == "corrupted"]
        values = steered_values(opened, question, steers).corrupted[0]
        assert [row[name] for row in drawn] == [getattr(each, name) for each in steers]
        assert [row["value"] for row in drawn] == pytest.approx(values.tolist(), abs=1e-5)
        assert rows_of(at, "rule", chart) == [{name: at_rule}]


@pytest.mark.usefixtures("small_models")
def test_the_direction_becomes_an_intervention_and_a_prompt_is_written_on_or_refused() -> None:
    at = press(steering(steer_prompt="the cat"), "add_steering")
    words = "Layer 1: 2.50 × (“the cat and the hat” − “the hat and the cat”) added"
    assert words in said(at)
    address = str(at.text_input(key="edits").value)
    other = apps.page("experiments/interventions", model="letters", edits=address)
    assert words in said(other)
    assert "not apply" not in said(other)
    assert steered_text(open_model("letters"), "the cat", None).strip() in said(at)
    for prompt, answer in (
        ("cat " * 60, "tokens long and this model reads at most"),
        (" ", "There is nothing to continue: type a prompt."),
    ):
        apps.run(at.text_input(key="steer_prompt").set_value(prompt))
        assert answer in said(at)


def test_many_pairs_are_shown_with_their_spread_and_are_too_many_for_a_link() -> None:
    how = {"circuit_view": "Steering", "text": "abcab", "pair_source": "Induction", "layer": "1"}
    at = shipped(**how, pair_count="9", steer_strength="2.5")
    for words in (
        "mean and standard deviation over 9 pairs",
        "mean over 9 pairs), added to the residual stream",
        "at most 16 texts in all",
    ):
        assert words in said(at)
    assert all(row["least"] < row["most"] for row in rows_of(at, "area", 0))
    assert at.button(key="add_steering").disabled
    at.number_input(key="pair_count").set_value(4).run()
    assert not at.button(key="add_steering").disabled


def searched(text: str, **address: str) -> AppTest:
    """The view Text as evidence after this text was pasted."""
    at = page(circuit_view="Text as evidence", lines_from="Pasted text", **address)
    apps.run(at.text_area(key="evidence_text").set_value(text))
    return at


@pytest.mark.usefixtures("small_models")
def test_the_best_lines_have_their_tokens_and_follow_to_the_card_of_a_head() -> None:
    at = searched(LINES, layer="1", head="2")
    best = list(at.dataframe[-1].value["text"])
    header, _ = sent(at, "line_0")
    encoded = open_model("letters").tokenizer.encode(best[0])
    assert header["labels"] == [token.label for token in encoded]
    assert max(header["shades"]) == 1.0
    assert header["shades"][0] == 0.0, "the first token does not count"
    assert {"line_2", "line_3"} & views(at) == {"line_2"}
    apps.run(at.selectbox(key="circuit_view").set_value("Head card"))
    assert table(at, "text")["text"] == best[:3]
    apps.run(at.selectbox(key="head").set_value(3))
    assert len(list(activations_root().iterdir())) == 1, "every head was measured at once"
    assert NOT_SEARCHED in said(page(circuit_view="Head card"))
    at.selectbox(key="circuit_view").set_value("Text as evidence").run()
    for text, answer in (
        ("", "There is no line to read yet: type or upload a text."),
        ("a" * 1_001, "A line of this text has 1,001 characters"),
        ("\n".join(map(str, range(1_001))), "The text has 1,001 lines; the limit is 1,000 lines"),
    ):
        at.text_area(key="evidence_text").set_value(text).run()
        assert answer in said(at)
        assert "line_0" not in views(at)


@pytest.mark.usefixtures("small_models")
def test_lines_that_take_long_are_measured_after_a_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.views.shared.measurement.QUICK", 10)
    at = searched(f"{LINES}hat cat\n")
    assert "0 of 5 lines are measured." in said(at)
    assert "\n5 lines." in said(press(at, "begin_lines"))


def test_the_texts_of_the_app_and_the_examples_of_a_task_are_lines(small_models: Path) -> None:
    for opened in (open_checkpoint(small_models / "letters", "letters"), open_model("letters")):
        for name in built_in_texts(opened):
            lines = built_in_lines(opened, name)
            assert 20 < len(lines) <= 300
            assert all(line == line.strip() and line for line in lines)
    induction = open_checkpoint(SHIPPED / "induction", "induction")
    assert built_in_texts(induction)[0] == OF_TASK
    assert next(iter(built_in_lines(induction, OF_TASK))).isalpha()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the command line wrote of the induction model."""
    out = tmp_path_factory.mktemp("finding") / "finding.json"
    texts = ["--clean", CLEAN, "--corrupted", CORRUPTED]
    command = ["circuit", "--model", str(SHIPPED / "induction"), *texts, "--out", str(out)]
    assert main(command) == 0
    return Path(out).read_bytes()


def opened_finding(data: bytes, **address: str) -> AppTest:
    at = shipped(pair_source="A finding", **address)
    apps.run(at.file_uploader(key="finding_file").upload("finding.json", data, "application/json"))
    return at


def downloaded(at: AppTest, monkeypatch: pytest.MonkeyPatch) -> Finding:
    """What the panel gives to whoever opens it now."""
    made: list[bytes] = []
    offer = "explorer.views.circuits.question_scores.st.download_button"
    monkeypatch.setattr(offer, lambda *_, data, **__: made.append(data))
    put_state(at, finding=True)
    return finding_from(made[-1])


def test_what_is_measured_is_downloaded(monkeypatch: pytest.MonkeyPatch, written: bytes) -> None:
    at = put_state(shipped(text="zyxzyxzy", circuit_view="Steering"), finding=True)
    assert "There are no estimates by EAP-IG yet: the view Heads makes them." in said(at)
    at = shipped(corrupted=CORRUPTED, circuit_view="Heads")
    half = downloaded(at, monkeypatch)
    assert all(head.exact is not None for head in half.heads)
    assert (half.faithfulness, half.minimum) == ((), None)
    assert "No circuits of every size yet: the view Circuit runs them." in said(at)
    at = shipped(corrupted=CORRUPTED, circuit_view="Circuit", patched_edges="40")
    whole, of_command = downloaded(at, monkeypatch), finding_from(written)
    assert (whole.digest, whole.minimum) == (of_command.digest, of_command.minimum)
    for mine, its in zip(whole.edges, of_command.edges, strict=True):
        assert mine.title == its.title
        assert mine.exact == pytest.approx(its.exact, abs=1e-4)


def test_a_finding_is_opened_with_its_own_model_and_with_another(written: bytes) -> None:
    for model, sentences in {
        "induction": ["This finding is of these weights.", "there and here: 1.00."],
        "induction-learned": [
            "This finding is of induction, which has other weights of the same shape",
            "Pearson's r of the estimates of 4 heads, there and here: ",
            "Edges of the smallest circuit tried that restores 90 % of the difference: ",
        ],
        "induction-control": ["which has another shape (2 layers of 2 heads"],
        "negation": ["Pair 1 is not a valid pair. "],
    }.items():
        words = said(opened_finding(written, model=model))
        assert [each for each in sentences if each not in words] == []


def test_what_is_no_finding_is_refused(written: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "This file is no finding about a circuit" in said(opened_finding(b"{}"))
    of_classes = written.replace(b'"Logit difference"', b'"Class score"')
    assert (
        "The finding measures the class score, which this model does not have (logit difference, "
        "probability, KL divergence, loss): choose another model."
    ) in said(opened_finding(of_classes))
    monkeypatch.setenv("EXPLORER_LIMIT_FINDING_BYTES", "1000")
    assert limits.FINDING_BYTES.refusal(len(written)) in said(opened_finding(written))
    monkeypatch.setenv("EXPLORER_LIMIT_FINDING_BYTES", "1_000_000")
    monkeypatch.setenv("EXPLORER_LIMIT_PAIRS", "0")
    assert limits.PAIRS.refusal(1) in said(opened_finding(written))
