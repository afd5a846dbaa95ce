"""The step in the bar: every page shows the model as it was then, and says so."""

from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from explorer.app.training_steps import TRAINED
from explorer.inference.forward_pass import run_text
from explorer.runs.open_run import open_folder
from explorer.runs.run import Run
from tests import apps
from tests.apps import exported, said
from tests.views.drawing import PAGES, path_of

TEXT = "abcdef"


def page(run: Run, path: str = "attention/attention", **address: str) -> AppTest:
    return apps.page(path, model=run.name, text=TEXT, **address)


def test_a_page_shows_the_model_of_the_step_and_its_export_says_which(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = page(run, training_step="5", layer="0", head="1")
    assert at.selectbox(key="training_step").options == [*"012357", "10", "12", "final"]
    figure = exported(at, monkeypatch)
    opened = open_folder(dict(run.snapshots())[5])
    expected = run_text(opened, TEXT).weights("decoder.cross_attn", 0, 1)
    assert torch.equal(figure.values, expected), "of the snapshot, exactly"
    assert figure.about["training step"] == "5"
    assert "at step 5" in figure.title


def test_another_step_is_another_model_and_the_trained_one_comes_back(run: Run) -> None:
    at = page(run)
    chosen = at.selectbox(key="training_step")
    assert chosen.value == TRAINED
    chosen.set_value(0).run()
    assert not at.exception
    chosen.set_value(TRAINED).run()
    assert "at step" not in said(at)


@pytest.mark.parametrize(("asked", "quoted"), [("6", "6"), ("../5", "../5"), ("", "")])
def test_a_step_that_is_not_there_is_replaced(run: Run, asked: str, quoted: str) -> None:
    at = page(run, training_step=asked)
    assert f"“Step” has no “{quoted}” in its training; showing final." in said(at)
    assert at.selectbox(key="training_step").value == TRAINED


def test_a_model_without_snapshots_has_no_step(small_models: Path) -> None:
    at = apps.page("attention/attention", model="letters", training_step="5")
    assert "“Step” has no “5” in its training; showing the trained model." in said(at)
    assert "training_step" not in {each.key for each in at.selectbox}
    assert "training_step" not in at.query_params


def test_a_run_that_goes_on_shows_its_newest_snapshot(run: Run) -> None:
    (run.folder / "checkpoint").rename(run.folder / "aside")
    at = page(run)
    assert at.selectbox(key="training_step").options[-1] == "newest"
    assert at.selectbox(key="model").value == run.name


@pytest.mark.parametrize("path", [*map(path_of, PAGES)])
def test_every_page_draws_a_model_at_a_step(run: Run, path: str) -> None:
    page(run, path, training_step="2")
