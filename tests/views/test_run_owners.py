"""Runs of several readers: each sees their own, and what a link names; it is theirs to change."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.app.reader_runs import COMES_WITH_THE_APP, SOMEBODY_ELSES
from explorer.app.session import SESSION_KEY, Session
from explorer.catalog.available_models import ListedRun, list_models
from explorer.runs.run import Run, all_runs, create
from explorer.runs.settings import spec_of
from explorer.runs.spec import RunNotes
from explorer.runs.worker import train_to_end
from explorer.tasks import task_of
from tests import apps
from tests.apps import said
from tests.source import ROOT
from tests.tiny import tiny_run, tiny_spec
from tests.views.drawing import press
from tests.views.fake_cluster import FakeCluster

ANN, BOB = "a" * 32, "b" * 32
DIARY = "dear diary today i met a wolf. " * 60
COMMANDS = {"pause", "resume", "step", "stop", "delete_run"}

pytestmark = pytest.mark.usefixtures("cluster")


def page(owner: str, name: str = "training", **address: str) -> AppTest:
    """A page about training, as this reader has it."""
    at = apps.at_address(str(ROOT / "pages" / "training" / f"{name}.py"), **address)
    at.session_state[SESSION_KEY] = Session(owner=owner)
    return apps.run(at)


def commands(at: AppTest) -> set[str]:
    return {button.key for button in at.button if button.key} & COMMANDS


def everything(at: AppTest) -> str:
    """All that is said, offered or filled in."""
    values: Iterator[Any] = (each.value for each in (*at.text_input, *at.text_area))
    options = (option for each in at.selectbox for option in each.options)
    return "\n".join(map(str, (said(at), *values, *options, *(f.value for f in at.dataframe))))


def diary_of_ann(root: Path) -> Run:
    """A finished run that learned from her text."""
    spec = spec_of(task_of("characters", DIARY), {"steps": 2, "d_model": 16})
    made = create(root, replace(spec, training=spec.training.replace(steps=2)), DIARY, ANN)
    train_to_end(made.folder)
    return made


def test_a_reader_is_shown_their_own_runs_and_those_of_nobody_else(tmp_path: Path) -> None:
    press(page(ANN), "start_training")
    (run,) = all_runs(tmp_path)
    assert (run.owner, run.title) == (ANN, "reverse-1")
    assert run.name != run.title, "its name has a key"
    hers = page(ANN)
    assert "reverse-1** · waiting" in said(hers)
    assert run.name not in everything(hers), "the key is in the address alone"
    his = page(BOB)
    assert "reverse-1" not in everything(his)
    assert not commands(his)


def test_the_run_of_who_runs_the_server_is_found_by_no_guess(tmp_path: Path) -> None:
    tiny_run(tmp_path)
    at = page(BOB, run="reverse-1")
    assert "There is no run called “reverse-1” here; choose another or start one." in said(at)
    assert not commands(at)
    inside = apps.page("training/inside_training", run="reverse-1")
    assert "There is no run called" in said(inside)


def test_who_has_the_link_sees_the_model_and_no_sentence_note_or_tag(tmp_path: Path) -> None:
    run = diary_of_ann(tmp_path)
    hers, his = page(ANN, run=run.name), page(BOB, run=run.name)
    assert "diary" in everything(hers)
    for at in (hers, his):
        assert "characters-1** · done" in said(at)
    assert SOMEBODY_ELSES in said(his)
    assert not commands(his)
    assert not {word for word in ("diary", "wolf", "today") if word in everything(his)}
    for is_own in (True, False):
        listed = list_models(runs=[ListedRun(str(tmp_path), run.name, is_own)])
        (model,) = (each for each in listed if each.origin == "run")
        assert any("diary" in example for example in model.examples) == is_own
    run.note(RunNotes(("mine",), "for Eve", "0123456789ab", "a race"))
    for owner in (ANN, BOB):
        table = everything(page(owner, "runs", runs=run.name))
        assert "characters-1" in table
        noted = {words for words in ("mine", "for Eve", "a race") if words in table}
        assert len(noted) == (3 if owner == ANN else 0)


def test_a_run_is_started_from_ones_own_without_its_key(tmp_path: Path) -> None:
    run = diary_of_ann(tmp_path)
    at = page(ANN, task="subwords", start_from="characters-1")
    assert "Read by the tokenizer of" in said(at)
    assert run.name not in everything(at)
    his = page(BOB, task="subwords")
    assert "characters-1" not in everything(his)


def test_a_message_of_no_button_changes_nothing(cluster: FakeCluster, tmp_path: Path) -> None:
    """The page was drawn for its owner, and what is clicked there comes from somebody else."""
    run = create(tmp_path, tiny_spec(), owner=ANN)
    cluster.submit(run)
    at = page(ANN, run=run.name)
    assert commands(at) == COMMANDS - {"resume"} | {"pause"}
    for key in ("pause", "stop", "delete_run"):
        at = page(ANN, run=run.name)
        at.session_state[SESSION_KEY].owner = BOB
        press(at, key)
        assert run.last_command() == "train"
        assert len(all_runs(tmp_path)) == 1
    assert cluster.sent == [run.name]


def test_a_run_is_deleted_after_a_second_click(cluster: FakeCluster, tmp_path: Path) -> None:
    kept, gone = (create(tmp_path, tiny_spec(), owner=ANN) for _ in range(2))
    at = page(ANN, run=gone.name)
    assert f"This deletes **{gone.title}**: its metrics" in said(at), "behind the first click"
    press(at, "delete_run")
    assert [run.name for run in all_runs(tmp_path)] == [kept.name]
    assert not gone.folder.exists()
    assert "reverse-2" not in everything(at)


def test_a_run_comes_with_the_app_for_everybody_and_nobody_changes_it(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    monkeypatch.delenv("EXPLORER_RECORDED")
    recorded = "reverse-recorded"
    for _ in ("a reader", "at the machine"):
        table = page(BOB, "runs", runs=recorded)
        assert [*table.dataframe[0].value["whose"]] == [COMES_WITH_THE_APP]
        assert not {button.key for button in table.button} & {"delete_runs"}
        at = page(BOB, run=recorded)
        assert f"done · {COMES_WITH_THE_APP}" in said(at)
        assert not commands(at)
        request.getfixturevalue("at_the_machine")
    assert page(BOB, "inside_training").selectbox(key="run").value == recorded
    moments = page(BOB, "training_history", model=recorded, history_view="Two moments")
    assert "map_difference" in apps.views(moments)
    assert not all_runs(tmp_path), "nothing of it is written into the reader's folder"
