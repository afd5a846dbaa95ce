"""The page Inside training without a browser: whose run it shows, and that its numbers are true."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.analysis.gradient_noise import gradients, noise_scale
from explorer.analysis.one_update import OneUpdate
from explorer.runs.retraining import at_saved_step
from explorer.runs.run import Run, open_folder
from explorer.runs.worker import advance
from explorer.tasks import TASKS
from explorer.tasks.data_summary import examples_of
from explorer.text.number_format import three
from explorer.views.inside_training import (
    chosen_run,
    landscape_view,
    one_update_view,
    over_snapshots,
)
from models.losses import IGNORE
from models.training import Batch, train
from tests import apps
from tests.apps import said
from tests.tiny import tiny_run, trained_run
from tests.views.drawing import pasted, put_state, run, sent

PAGE = "training/inside_training"
SCORES = {"inside_view": "Head scores"}


@pytest.fixture
def runs(
    at_the_machine: None, small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder of the runs, all of which the reader sees."""
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    return tmp_path


@pytest.fixture
def trained(runs: Path) -> Run:
    """At its end, with snapshots 0, 1, 2, 3, 5 and 6."""
    return trained_run(runs, steps=6)


def loss_at(made: Run, step: int) -> float:
    """What the run has recorded of this update."""
    return dict(made.metrics().losses())[step]


def values(at: AppTest) -> dict[str, str]:
    """The first table: what each value is called, and the value."""
    return dict(zip(*(at.dataframe[0].value[name] for name in ("what", "value")), strict=True))


def test_it_is_of_the_models_run_or_the_newest_until_one_is_chosen(
    trained: Run, runs: Path
) -> None:
    """RETRAINED_EXACTLY is said where the weights trained again are the snapshot's, bit for bit."""
    second = trained_run(runs, optimizer="muon", steps=6)
    for asked in ({"model": "reviews"}, {"model": trained.name, "run": second.name}):
        assert apps.page(PAGE, **asked).selectbox(key="run").value == second.name
    at = apps.page(PAGE, model=trained.name, update_after="0", update_stage="1")
    chosen = at.selectbox(key="run")
    assert chosen.value == trained.name
    for place, step, made in ((0, 0, trained), (4, 5, trained), (3, 3, second)):
        at.session_state["update_after"] = place
        apps.run(chosen.set_value(made.name))
        assert f"Update {step + 1} of 6. The stronger a cell" in said(at)
        assert one_update_view.RETRAINED_EXACTLY in said(at)
        assert f"their mean, {three(loss_at(made, step + 1))} nats" in said(at)


def test_the_saved_state_of_a_run_gives_the_update_that_a_resume_does(runs: Path) -> None:
    made = tiny_run(runs)
    made.command("step")
    assert [progress.report.step for progress in advance(made.folder)] == [1]
    at = apps.page(PAGE, run=made.name, update_stage="5")
    assert one_update_view.SAVED in said(at)
    assert "Update 2 of 12" in said(at)
    spec, began = made.spec, at_saved_step(made, made.spec)
    assert began is not None
    task = TASKS["reverse"]
    training = spec.training
    report = next(train(began.model, lambda s: task.batch(s, training), training, began.state))
    assert values(at)["loss before"] == f"{three(report.loss)} nats"
    made.command("step")
    assert [progress.report.step for progress in advance(made.folder)] == [2]
    assert loss_at(made, 2) == pytest.approx(report.loss, rel=1e-6)


def test_every_stage_and_an_example_are_drawn(trained: Run, tmp_path: Path) -> None:
    """And the lines to paste make the losses of the picture."""
    at = apps.page(PAGE, run=trained.name, update_after="3", update_example="2")
    seen = apps.views(at)
    for stage in (2, 3, 4, 5, 1):
        put_state(at, update_stage=stage)
        seen |= apps.views(at)
    assert {"update_reads_0", "batch_losses", "update_gradient", "update_update"} <= seen
    assert "Example 2, encoder" in said(at)
    batch = trained.task().batch(3, trained.spec.training)
    (example,) = examples_of(trained.task(), Batch(batch.inputs, batch.labels), 3)[2:]
    header, _ = sent(at, "update_reads_1")
    assert header["labels"] == [token.label for token in example.inputs[-1]]
    losses = run(pasted(at), tmp_path)[0]["update"].losses
    assert sent(at, "batch_losses")[0]["shape"] == list(losses.shape)
    assert f"their mean, {three(float(losses[~losses.isnan()].mean()))} nats" in said(at)


def test_what_is_computed_and_what_is_too_much_is_said(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landscape_view, "SIDE", 3)
    trained = trained_run(runs, steps=2)
    for asked, words in (
        ({"inside_view": "Loss landscape"}, f"{3 * 3 + 3} forward passes in all"),
        (SCORES | {"scores_metric": "Strongest program"}, "fitted at every snapshot on 8 lines"),
        (SCORES | {"scores_text": "a" * 300}, "This text is 30"),
    ):
        assert words in said(apps.page(PAGE, run=trained.name, **asked))
    assert "train a model on it first" in said(apps.page(PAGE, run_task="negation"))


def test_settings_that_changed_while_it_trained_are_those_of_its_updates(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tiny_run(runs, steps=6)
    for progress in advance(made.folder):
        if progress.report.step == 3:
            made.change(lr=0.0007, clip=0.01, label_smoothing=0.2)
    assert [each.step for each in made.changes()] == [3]
    words = "Label smoothing of 0.200 is included."
    at = apps.page(PAGE, run=made.name, update_after="1", update_stage="1")
    assert words not in said(at), "not of the beginning"
    put_state(at, update_after=4)
    mean = f"their mean, {three(loss_at(made, 6))} nats"
    assert all(each in said(at) for each in (words, one_update_view.RETRAINED_EXACTLY, mean))
    assert values(put_state(at, update_stage=2))["clipped to at most"] == "0.0100"
    monkeypatch.setattr(over_snapshots, "BATCHES", 4)
    model, now = open_folder(dict(made.snapshots())[6]).model, made.spec_now().training
    found = [*gradients(model, lambda at: made.task().batch(6 + at, now), 4, 0.2)]
    squared = three(noise_scale(found, now.batch_size).squared_gradient)
    assert values(apps.page(PAGE, run=made.name, inside_view="Gradient noise"))["‖G‖²"] == squared


def test_too_much_is_not_computed_or_refused_unopened(
    trained: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(one_update_view, "MOST", 0)
        at = apps.page(PAGE, run=trained.name, update_after="2", update_stage="2")
        assert "so the gradient is shown without the update" in said(at)
        norms = {row.step: row.grad_norm for row in trained.metrics().rows}
        assert norms[3] is not None
        assert values(at)["gradient norm, all parts"] == three(norms[3])
        patch.setattr("models.losses.LARGE_LOGITS", 1)
        at = apps.page(PAGE, run=trained.name, update_after="1")
        assert one_update_view.TOO_MANY_LOGITS in said(at)
    monkeypatch.setenv("EXPLORER_LIMIT_INSIDE_BYTES", "1000")
    monkeypatch.setattr(chosen_run, "open_snapshot", lambda *_: pytest.fail("a snapshot is opened"))
    for view in ("Loss landscape", "Gradient noise"):
        at = apps.page(PAGE, run=trained.name, inside_view=view)
        assert "This view of the run would need" in said(at)


@pytest.mark.parametrize("task", ["reverse", "negation"])
def test_losses_without_numbers(runs: Path, monkeypatch: pytest.MonkeyPatch, task: str) -> None:
    made = trained_run(runs, task=task, steps=3)
    real = one_update_view.take_apart

    def diverged(*given: Any) -> OneUpdate:
        update = real(*given)
        return replace(update, losses=torch.full_like(update.losses, math.nan))

    monkeypatch.setattr(one_update_view, "take_apart", diverged)
    at = apps.page(PAGE, run=made.name, update_after="2", update_stage="1")
    assert "not finite, so the batch has no finite loss" in said(at)
    known = int((made.task().batch(2, made.spec.training).labels != IGNORE).sum())
    assert f"{known:,} of {known:,} are not finite" in said(at)
