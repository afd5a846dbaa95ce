"""The film of a training: every frame is the pass of its snapshot, and what is said of the run."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.app.choice import TRAINED
from explorer.components import wire
from explorer.inference.forward_pass import rerun, run_text
from explorer.runs.run import Run, open_folder
from explorer.runs.spec import WAITING
from explorer.views.training_history import moments
from tests import apps
from tests.apps import exported, said
from tests.tiny import trained_run
from tests.views.drawing import PAGES, path_of, press, sent, titles
from tests.views.fake_cluster import FakeCluster

TEXT = "abcdef"
PAGE = "training/training_history"
STEPS = [0, 1, 2, 3, 5]


@pytest.fixture
def run(at_the_machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Shorter than that of other tests: a film opens every snapshot."""
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    return trained_run(tmp_path, steps=STEPS[-1])


def page(run: Run, **address: str) -> AppTest:
    return apps.page(PAGE, model=run.name, text=TEXT, part="Cross", layer="0", head="1", **address)


def test_a_frame_is_the_pass_of_its_snapshot_and_of_weights_that_replace_its(run: Run) -> None:
    drawn = page(run)
    header, planes = sent(drawn, "film")
    assert header["steps"] == STEPS
    assert header["keys"] == ["film_heads", "film_map", "film_pass"]
    assert len(planes) == len(STEPS) * len(header["keys"])
    assert header["at"] == 0, "no head forms in so few steps"
    at = page(run, training_step="2", film_step="6")
    assert sent(at, "film")[0]["at"] == STEPS.index(2), "it begins at the step of the bar"
    assert "“Step of the film” has no “6” in this training; showing step " in said(at)
    snapshots = dict(run.snapshots())
    last = run_text(open_folder(snapshots[STEPS[-1]]), TEXT)
    for place, step in enumerate(STEPS):
        opened = open_folder(snapshots[step])
        forward = rerun(opened, last, last.source, last.target, ())
        expected = forward.weights("decoder.cross_attn", 0, 1).numpy()
        _, shown = wire.unpack(planes[f"{place} film_map"])
        found = np.frombuffer(shown["exact"], "<f4").reshape(expected.shape)
        assert np.array_equal(found, expected), step
        assert header["captions"][place][0] == ["Writes", run_text(opened, TEXT).answer.text or "–"]
    for each in snapshots[STEPS[-1]].iterdir():
        shutil.copy(each, snapshots[1] / each.name)
    _, after = sent(apps.run(drawn), "film")
    assert after["1 film_map"] != planes["1 film_map"]
    maps = [wire.unpack(after[f"{place} film_map"])[1]["exact"] for place in (1, len(STEPS) - 1)]
    assert maps[0] == maps[1]


def test_a_guess_is_answered_with_the_pattern_over_the_heads(run: Run) -> None:
    at = page(run, history_view="Guess the pattern")
    assert "ghost" not in sent(at, "pattern_0")[1]
    press(at, "guess_0")
    assert "on the pattern" in said(at)
    for step in (STEPS[0], STEPS[-1]):
        _, planes = sent(at, f"ghost_{step}")
        assert any(planes["ghost"])
    press(at, "guess_again")
    assert sent(at, "pattern_2")
    apps.run(at.selectbox(key="part").set_value("encoder.self_attn"))
    assert "has no expected pattern for this attention" in said(at)


def test_two_moments_are_two_snapshots_and_their_difference(run: Run) -> None:
    at = page(run, history_view="Two moments", first_step="1", second_step="3")
    assert {"Step 1", "Step 3"} < {*titles(at)}
    keys = ("moment_first", "moment_second", "map_difference")
    first, second, change = (np.frombuffer(sent(at, key)[1]["exact"], "<f4") for key in keys)
    assert np.allclose(second - first, change, atol=1e-6)


def test_a_model_without_snapshots_offers_those_that_have(run: Run) -> None:
    assert sent(apps.page(PAGE), "film")[0]["steps"] == STEPS, "whoever names no model sees a film"
    assert apps.page("experiments/circuits").selectbox(key="model").value == "induction"
    at = apps.page(PAGE, model="reverse", text="ab")
    assert "This model has no snapshots of its training. These have some:" in said(at)
    press(at, f"history_of_{run.name}")
    assert sent(at, "film")[0]["steps"] == STEPS


def test_what_is_too_long_is_said_before_passes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.views.training_history.film_view.MOST_FILM_TOKENS", 3)
    monkeypatch.setattr(moments, "history_of", lambda context: pytest.fail("passes were made"))
    assert "A film shows at most 3 tokens" in said(page(run))


def test_a_run_is_followed_until_it_ends(cluster: FakeCluster, run: Run, tmp_path: Path) -> None:
    at = apps.page(PAGE, model=run.name, text=TEXT)
    assert not at.get("progress"), "it has ended"
    shutil.rmtree(run.folder / "checkpoint")
    step, last = run.snapshots()[-1]
    aside = last.rename(tmp_path / "aside")
    run.mark(WAITING)
    cluster.submit(run)
    apps.run(at)
    assert at.get("progress")
    assert at_step(run).selectbox(key="training_step").options[-1] == "newest"
    assert step not in sent(at, "film")[0]["steps"]
    aside.rename(last)
    at.run()
    assert sent(at, "film")[0]["steps"] == [step for step, _ in run.snapshots()]


def at_step(run: Run, path: str = "attention/attention", **address: str) -> AppTest:
    return apps.page(path, model=run.name, text=TEXT, **address)


def test_a_page_and_its_export_are_of_the_step(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    at = at_step(run, training_step="2", layer="0", head="1")
    chosen = at.selectbox(key="training_step")
    assert chosen.options == [*map(str, STEPS), "final"]
    figure = exported(at, monkeypatch)
    opened = open_folder(dict(run.snapshots())[2])
    expected = run_text(opened, TEXT).weights("decoder.cross_attn", 0, 1)
    assert torch.equal(figure.values, expected), "of the snapshot, exactly"
    assert figure.about["training step"] == "2"
    assert "at step 2" in figure.title
    apps.run(at.selectbox(key="training_step").set_value(TRAINED))
    assert "at step" not in said(at), "the trained one comes back"


def test_a_step_that_is_not_there_is_replaced(run: Run) -> None:
    for asked in ("6", "../5", ""):
        at = at_step(run, training_step=asked)
        assert f"“Step” has no “{asked}” in its training; showing final." in said(at)
        assert at.selectbox(key="training_step").value == TRAINED


def test_every_page_draws_a_model_at_a_step(run: Run, subtests: pytest.Subtests) -> None:
    for path in map(path_of, PAGES):
        with subtests.test(path=path):
            at_step(run, path, training_step="2")
