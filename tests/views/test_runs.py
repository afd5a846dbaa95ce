"""The Runs page without a browser: found, chosen, noted, deleted and back, raced, refused."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis.attention_sinks import sink_weights
from explorer.app.session import SESSION_KEY
from explorer.catalog.opened_model import open_model
from explorer.components.mounting import PageViews
from explorer.inference.forward_pass import run_text
from explorer.runs.run import Run, all_runs, create, open_folder
from explorer.runs.spec import RunNotes
from explorer.runs.worker import train_to_end
from explorer.system.data_folders import runs_root
from explorer.text.number_format import three
from explorer.text.visible_text import literal
from explorer.views.runs.run_comparison import comparison_columns, measured_runs
from explorer.views.runs.run_rows import SORTS, matching_rows, ordinal, rows_of
from explorer.views.runs.run_table import ChosenRuns
from tests import apps
from tests.apps import said
from tests.tiny import labelled_table as labelled
from tests.tiny import tiny_run, tiny_spec, trained_run, tuned_run
from tests.views.drawing import pasted, press, run
from tests.views.fake_cluster import FakeCluster

RACES = {"runs_view": "Races and sweeps"}


@pytest.fixture(autouse=True)
def cluster(at_the_machine: None, cluster: FakeCluster) -> FakeCluster:
    return cluster


@pytest.fixture
def trained(cluster: FakeCluster, tmp_path: Path) -> list[Run]:
    return [trained_run(tmp_path, lr=lr) for lr in (0.001, 0.003)]


page = partial(apps.page_alone, "training/runs")


def table(at: AppTest) -> list[dict[str, Any]]:
    """The rows of the table of runs."""
    rows: list[dict[str, Any]] = at.dataframe[0].value.to_dict("records")
    return rows


def test_what_was_changed_while_it_trained_is_named_with_its_step(tmp_path: Path) -> None:
    changed = tiny_run(tmp_path)
    changed.command("step")
    train_to_end(changed.folder)
    changed.change(lr=0.05)
    changed.command("resume")
    train_to_end(changed.folder)
    (row,) = rows_of([changed])
    (at,) = changed.changes()
    assert row.changed().endswith(f", lr 0.05 from step {at.step} on")


def test_runs_are_found_by_any_word_and_sorted(trained: list[Run], tmp_path: Path) -> None:
    trained[0].note(RunNotes(("slow",), "the first try"))
    waits = tiny_run(tmp_path, steps=5_000)
    (tmp_path / "broken-1").mkdir()
    (tmp_path / "broken-1" / "spec.json").write_text("{")
    at = page()
    names = [row["run"] for row in table(at)]
    assert names == ["broken-1", waits.title, "reverse-2", "reverse-1"]
    states = [row["state"] for row in table(at)]
    assert states == ["damaged", "interrupted", "done", "done"]
    assert "cannot be read" in table(at)[0]["changed settings"]
    assert [row["run"] for row in table(page(find="TRY slow"))] == ["reverse-1"]
    assert "No run has all these words." in said(page(find="nonsense"))
    rows = rows_of(all_runs(tmp_path))
    for sort in SORTS:
        assert len(matching_rows(rows, "", sort)) == 4
    assert matching_rows(rows, "", "Largest on disk")[-1].run.title in ("broken-1", waits.title)
    best = dict(trained[1].metrics().values())
    assert table(at)[2]["best"] == three(max(best.values()))


def test_several_are_compared_and_lines_make_the_curves(trained: list[Run], tmp_path: Path) -> None:
    at = page(runs=[each.name for each in trained], curves_over="Seconds")
    files = [file for each in trained for file in each.folder.rglob("*") if file.is_file()]
    held = sum(file.stat().st_size for file in files) / 1e6
    assert f"2 runs · {held:.3g} MB of" in said(at), "they hold this on disk"
    names = tuple(each.name for each in trained)
    assert at.session_state[SESSION_KEY].state(ChosenRuns).names == names
    (figure,) = at.session_state[SESSION_KEY].state(PageViews).drawn["compared_loss"].figures()
    assert set(figure.columns["name"]) == {"lr 0.001", "lr 0.003"}
    made, _ = run(pasted(at), tmp_path.parent)
    assert list(made["curves"]) == ["lr 0.001", "lr 0.003"]
    assert made["curves"]["lr 0.003"] == trained[1].metrics().values()


def test_measured_runs_are_drawn_as_settings_and_result(trained: list[Run], tmp_path: Path) -> None:
    found = measured_runs([*trained, tiny_run(tmp_path, lr=0.04), Run(tmp_path / "no run")])
    assert [each.name for each in found] == [each.name for each in trained]
    specs = [each.spec for each in found]
    assert comparison_columns(specs) == {"batch_size": [4, 4], "lr": [0.001, 0.003]}
    names = [each.name for each in trained]
    other = tiny_run(tmp_path, task="sort").name
    at = page(runs=[names[0], other])
    at.session_state["run_comparison"] = True
    at.run()
    assert "select both" in said(at), "the other was not measured, and is of another task"
    at = page(runs=names)
    at.session_state["run_comparison"] = True
    apps.run(at)
    assert len(at.get("plotly_chart")) == 1


@pytest.mark.usefixtures("small_models")
def test_one_run_leads_to_the_pages_that_show_it(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    own, tuned = trained_run(runs), tuned_run(runs, open_model("letters"))
    assert train_to_end(tuned.folder) == "done"
    of_all = {"open_training", "open_run", "watch_run"}
    for each, leads in ((own, of_all), (tuned, of_all | {"compare_run"})):
        at = apps.page("training/runs", runs=each.name)
        assert leads == {button.key for button in at.button} & (of_all | {"compare_run"})


def test_chosen_runs_are_deleted_and_come_back(trained: list[Run], tmp_path: Path) -> None:
    at = page(runs=[each.name for each in trained])
    press(at, "delete_runs")
    assert all_runs(tmp_path) == []
    assert "2 runs" not in said(at), "nothing is listed"
    press(at, "undo_all")
    assert {each.name for each in all_runs(tmp_path)} == {each.name for each in trained}
    assert [row["run"] for row in table(at)] == ["reverse-2", "reverse-1"]


def test_a_click_starts_a_race_and_names_its_leader(cluster: FakeCluster, tmp_path: Path) -> None:
    at = page(**RACES)
    press(at, "race_0")
    first, second = reversed(all_runs(tmp_path))
    assert cluster.sent == [first.name, second.name]
    assert (first.spec.model.n_layers, second.spec.model.n_layers) == (1, 2)
    assert first.notes().sweep == second.notes().sweep == at.session_state["sweep"]
    assert "No run leads before two runs have been measured" in said(at)
    (states,) = [frame.value["state"].tolist() for frame in at.dataframe]
    assert states == ["queued, 1st in line", "queued, 2nd in line"]
    press(at, "stop_all")
    assert {first.last_command(), second.last_command()} == {"stop"}
    assert "There is no such race" in said(page(**RACES, sweep="0" * 12))


def test_a_race_of_twins_has_a_run_for_each(tmp_path: Path) -> None:
    press(page(**RACES), "race_3")
    twins = [*reversed(all_runs(tmp_path))]
    ways = [(run.spec.model.sink_logit, run.spec.model.gated_attention) for run in twins]
    assert ways == [(False, False), (True, False), (False, True)]
    assert len({(run.spec.training, run.spec.weights_seed) for run in twins}) == 1


def test_sinks_are_drawn_where_a_head_may_attend_to_nothing(tmp_path: Path) -> None:
    spec = tiny_spec("backcopy", steps=2)
    twin = create(tmp_path, replace(spec, model=spec.model.replace(sink_logit=True)))
    usual = create(tmp_path, spec)
    for each in (twin, usual):
        train_to_end(each.folder)
    assert "sink weight" not in said(page(runs=[usual.name]))
    at = page(runs=[usual.name, twin.name])
    assert "sink weight" in said(at)
    (figure,) = at.session_state[SESSION_KEY].state(PageViews).drawn["compared_sinks"].figures()
    last = run_text(open_folder(twin.folder), twin.task().example)
    assert figure.columns["value"][-1] == float(sink_weights(last, "decoder.self_attn").max())


def test_a_sweep_is_named_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = page(**RACES)
    at.text_input(key="swept_lr").set_value("1e-3, 3e-3").run()
    assert literal("lr 0.001 · lr 0.003") in said(at)
    press(at, "start_sweep")
    assert [each.spec.training.lr for each in all_runs(tmp_path)] == [3e-3, 1e-3]
    at.text_input(key="swept_lr").set_value("fast").run()
    assert "Learning rate needs a number, not 'fast'." in said(at)
    monkeypatch.setenv("EXPLORER_LIMIT_SWEEP_RUNS", "2")
    at.text_input(key="swept_lr").set_value("1,2,3").run()
    assert "These settings make 3 runs; the limit is 2 runs" in said(at)


@pytest.mark.usefixtures("small_models")
def test_a_sweep_from_a_trained_model_says_what_it_stores() -> None:
    at = page(**RACES)
    at.selectbox(key="sweep_task").set_value("sentences").run()
    at.selectbox(key="sweep_from").set_value("letters").run()
    assert "Read by the tokenizer of" in said(at)
    assert [each for each in at.button if each.key == "start_sweep"] == []
    at.text_area(key="pasted_sentences").set_value(labelled()).run()
    at.text_input(key="swept_lora_rank").set_value("0, 2").run()
    assert literal("lr 0.0003, whole model · lr 0.001, LoRA rank 2") in said(at)
    assert "All start from letters; its weights, " in said(at)
    assert "are stored once." in said(at)
    press(at, "start_sweep")
    whole, adapted = reversed(all_runs(runs_root()))
    assert [each.spec.lora_rank for each in (whole, adapted)] == [0, 2]
    assert whole.spec.parent == adapted.spec.parent == "letters"
    assert whole.text() == adapted.text() == labelled()
    assert adapted.task().classes == ("bad", "good")
    at.selectbox(key="sweep_task").set_value("characters").run()
    assert "Start from" not in [each.label for each in at.selectbox]


def test_places_are_ordinals() -> None:
    called = "1st 2nd 3rd 4th 11th 12th 13th 21st 111th".split()
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 111)] == called
