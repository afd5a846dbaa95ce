"""Parts and circuits on the page Circuits, without a browser: numbers, refusals, a stop."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.analysis.circuit_curves import circuit_curve, smallest_circuit
from explorer.analysis.wiring import WiringError
from explorer.catalog.folders import runs_root
from explorer.catalog.opened_model import Opened, open_model
from explorer.circuits.measure import (
    METHODS,
    Scores,
    attributions,
    contrast_of,
    corrupted_passes,
    exact_writers,
    mean_over_pairs,
    scores_of,
)
from explorer.circuits.outcome import KL, LOGIT_DIFFERENCE
from explorer.circuits.text_pairs import Question, TextPair, question_of
from explorer.inference.forward_pass import run_text
from explorer.inference.results_cache import forget
from explorer.runs.open_run import open_folder
from explorer.runs.worker import train_to_end
from explorer.snippets.circuit_code import circuit_lines, over_training_lines, parts_lines
from explorer.text.number_format import three
from models.gradients import GradientError
from tests import apps
from tests.apps import said
from tests.runs.making import tiny_run
from tests.source import ROOT
from tests.views.drawing import press

PAIR = TextPair("the cat and the hat", "the hat and the cat")

pytestmark = pytest.mark.usefixtures("small_models")


def page(**address: str) -> AppTest:
    asked = {"model": "letters", "text": PAIR.clean, "corrupted": PAIR.corrupted, **address}
    return apps.page("experiments/circuits", **asked)


def measured_here(method: str = "EAP-IG") -> tuple[Opened, Question, Scores]:
    opened = open_model("letters")
    question = question_of(opened, [PAIR], LOGIT_DIFFERENCE)
    return opened, question, scores_of(opened, [*attributions(opened, question, METHODS[method])])


def table(at: AppTest, column: str) -> dict[str, list[Any]]:
    """The table that has this column."""
    (found,) = (frame.value for frame in at.dataframe if column in frame.value)
    return {name: list(found[name]) for name in found}


def chart_rows(at: AppTest, name: str) -> list[dict[str, Any]]:
    specs = (json.loads(each.proto.spec) for each in at.get("vega_lite_chart"))
    layers = (layer for spec in specs for layer in spec["layer"])
    (rows,) = (each["data"]["values"] for each in layers if each["data"]["name"] == name)
    return list(rows)


@pytest.mark.parametrize("method", METHODS)
def test_parts_are_those_measured(method: str) -> None:
    at = page(circuit_view="Heads", attributed_by=method)
    opened, question, scores = measured_here(method)
    exact = torch.zeros_like(scores.writers)
    for columns, lost in exact_writers(contrast_of(opened, question.pairs[0])):
        exact[columns] = lost
    shown = table(at, "part")
    order = scores.writers.abs().argsort(descending=True)[: len(shown["part"])].tolist()
    assert shown[method] == [three(float(scores.writers[each])) for each in order]
    assert shown["exact"] == [three(float(exact[each])) for each in order]
    points = chart_rows(at, "parts")
    assert [each["exact"] for each in points] == pytest.approx(exact.tolist())
    assert [each["estimate"] for each in points] == pytest.approx(scores.writers.tolist())
    r = torch.corrcoef(torch.stack([scores.writers, exact]).double())[0, 1]
    assert f"over all parts: {r:.3f}." in said(at)
    assert f"All of it is {three(scores.difference)}." in said(at)


def test_the_circuit_is_the_one_measured() -> None:
    at = page(circuit_view="Circuit", patched_edges="7")
    opened, question, scores = measured_here()
    strongest = scores.strongest(7)
    exact = dict(mean_over_pairs(opened, question, strongest))
    shown = table(at, "edge")
    assert shown["edge"] == [scores.edge(*place).title for place in strongest]
    assert shown["exact"] == [three(exact[each]) for each in range(7)]
    passes, clean = corrupted_passes(opened, question), scores.clean[0]
    points = [*circuit_curve(passes, clean, scores.order)]
    drawn = [row["share"] for row in chart_rows(at, "curves") if "alone" in row["which"]][::2]
    assert drawn == pytest.approx([min(1.5, max(-0.5, each.circuit)) for each in points], abs=1e-4)
    few = smallest_circuit(passes, clean, scores.order, points)
    assert f"About {few:,} of {len(scores.order):,} edges" in said(at)


def test_what_is_long_waits_for_a_click_and_what_was_stopped_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("explorer.views.shared.long_work.QUICK", 1)
    opened = open_model("letters")
    forget(opened)
    at = page(circuit_view="Heads", pair_source="Your two texts")
    press(at, "begin_attribution")
    assert "Strongest parts" in said(at)
    assert set(table(at, "part")["exact"]) == {""}
    press(at, "begin_exact_parts")
    assert "" not in table(at, "part")["exact"]
    assert "" not in table(page(circuit_view="Heads"), "part")["exact"], "another reader has them"


def test_a_model_without_edges_says_why_and_has_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: object) -> None:
        raise WiringError("This model has a norm on the residual stream: there are no edges.")

    monkeypatch.setattr("explorer.circuits.measure.wiring_of", none)
    forget(open_model("letters"))
    assert "there are no edges." in said(page(circuit_view="Circuit"))
    assert table(page(circuit_view="Heads"), "part")["exact"][0] != ""
    forget(open_model("letters"))


def test_what_cannot_be_measured_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    at = page(circuit_view="Heads", attributed_by="EAP", outcome=KL)
    assert "choose EAP-IG" in said(at)

    def fail(*_: object) -> None:
        raise GradientError(
            "The gradient at decoder.0.resid_pre is not finite, so it says nothing."
        )

    forget(open_model("letters"))
    monkeypatch.setattr("explorer.circuits.measure.attribute", fail)
    assert "is not finite, so it says nothing." in said(page(circuit_view="Circuit"))


def test_a_model_that_was_not_trained_here_has_no_snapshots() -> None:
    at = page(circuit_view="Over training")
    assert "This model has no snapshots of its training" in said(at)


@pytest.mark.usefixtures("at_the_machine")
def test_every_snapshot_is_asked_the_same_question() -> None:
    run = tiny_run(runs_root(), task="induction")
    assert train_to_end(run.folder) == "done"
    texts = {"text": "abcdabcdab", "corrupted": "abxdabxdab"}
    asked = {**texts, "answer_token": "c", "against_token": "x", "attributed_by": "EAP"}
    at = page(model=run.name, circuit_view="Over training", circuit_step="1", **asked)
    step, folder = run.snapshots()[1]
    opened = open_folder(folder)
    pair = TextPair(texts["text"], texts["corrupted"], "c", "x")
    question = question_of(opened, [pair], LOGIT_DIFFERENCE)
    scores = scores_of(opened, [*attributions(opened, question, METHODS["EAP"])])
    assert f"Strongest edges at step {step}" in said(at)
    shown = table(at, "edge")
    edges = [scores.edge(*place) for place in scores.strongest(len(shown["edge"]))]
    assert shown["edge"] == [edge.title for edge in edges]
    assert shown["estimate"] == [three(edge.estimate) for edge in edges]
    checkpoint = run.folder / "checkpoint"
    forward = run_text(open_folder(checkpoint), pair.clean)
    printed = pasted(over_training_lines(forward, checkpoint, question, "EAP", 2), checkpoint)
    assert len(printed) == 3 * len(run.snapshots())


def test_the_lines_print_what_is_on_screen(small_models: Path) -> None:
    opened, question, scores = measured_here()
    forward, folder = run_text(opened, PAIR.clean), small_models / "letters"
    printed = pasted(parts_lines(forward, folder, question, "EAP-IG", has_edges=True), folder)
    estimates = [float(line.split()[-2]) for line in printed]
    assert estimates == pytest.approx(scores.writers.tolist(), abs=1e-5)
    *_, few = pasted(circuit_lines(forward, folder, question, "EAP-IG", 5), folder)
    assert f"About {few} of" in said(page(circuit_view="Circuit"))


def pasted(code: str, folder: Path) -> list[str]:
    """What a Python prints that runs where the README is."""
    found = subprocess.run(
        [sys.executable, "-c", code.replace(repr(folder.name), repr(str(folder)))],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.splitlines()
