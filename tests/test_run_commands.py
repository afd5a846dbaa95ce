"""Several runs on the command line: started, listed, measured, and written for other tools."""

import csv
import dataclasses
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from tensorboardX.proto.event_pb2 import Event

from explorer.__main__ import main
from explorer.catalog.shipped import SHIPPED, make_shipped
from explorer.runs.exported_metrics import COLUMNS, write_csv
from explorer.runs.parent import PARENT
from explorer.runs.run import Run, all_runs, run_named
from explorer.runs.worker import train_to_end
from explorer.tasks.recipes import RECIPES
from models.loading.checkpoint import peek
from models.loading.weight_files import WEIGHTS
from tests.tiny import labelled_table, save_small_models, tiny_run

TINY = "--heads 2 --d-model 16 --d-ff 16 --batch-size 4 --warmup 2 --steps 8".split()


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DASK_ADDRESS", raising=False)
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def printed(capsys: pytest.CaptureFixture[str], *line: str) -> Any:
    """The JSON that a command prints, alone on standard output."""
    assert main([*line, "--json"]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    return json.loads(said)


def events(folder: Path) -> dict[tuple[str, int], float]:
    """The scalars in the event files there, by tag and step: length, checksum, event, checksum."""
    found: dict[tuple[str, int], float] = {}
    for path in folder.iterdir():
        data, at = path.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            event = Event.FromString(data[at + 12 : at + 12 + length])
            found |= {(each.tag, event.step): each.simple_value for each in event.summary.value}
            at += 16 + length
    return found


@pytest.mark.timeout(120)
def test_a_sweep_trains_every_combination_from_one_copy_of_a_trained_model_for_each_seed(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a cluster of its own, which it ends: 6 s, most of it the start of the processes."""
    (text := tmp_path / "table.csv").write_text(labelled_table())
    parent = save_small_models(tmp_path) / "letters"
    line = ["sweep", "sentences", "--text", str(text), "--from", str(parent)]
    few = "--lora-rank 0,2 --weights-seed 1,2 --steps 2 --batch-size 2 --lr 0.01".split()
    assert main([*line, *few]) == 0
    first, *rows = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"All start from letters; its weights, .*, are stored 2 times\.", first)
    assert not (root / ".cluster.json").exists(), "its processes have ended"
    runs = all_runs(root)
    assert [row.split()[:2] for row in rows] == [[run.name, "done"] for run in reversed(runs)]
    asked = {(run.spec.weights_seed, run.spec.lora_rank) for run in runs}
    assert asked == {(1, 0), (1, 2), (2, 0), (2, 2)}
    for seed in (1, 2):
        of_seed = [run.folder for run in runs if run.spec.weights_seed == seed]
        assert len({(folder / PARENT / WEIGHTS).stat().st_ino for folder in of_seed}) == 1
    ((sweep, title),) = {(run.notes().sweep, run.notes().sweep_title) for run in runs}
    assert sweep
    assert title == "sentences: LoRA rank 0, 2 × weights seed 1, 2"


def test_what_makes_no_sweep_is_one_sentence(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for line, sentence in {
        "sweep reverse --lr 1e-3": "A sweep needs two values of one setting at least.",
        "sweep reverse --lr fast,slow": "Learning rate needs a number, not 'fast'.",
        "sweep reverse --layers 1,2.5": "Layers needs a whole number, not '2.5'.",
        "sweep reverse --norm layer,batch": "Norm has no 'batch'; it is one of layer",
        "sweep nothing --lr 1,2": "There is no task called 'nothing'",
        "sweep reverse --lora-rank 1,2": "LoRA adapts a model that was trained before: choose one",
        "sweep sentences --from absent --lr 1,2": "There is no model called 'absent' here.",
        "sweep sentences --tokenizer words --from absent": "--tokenizer is that of the model of",
        "evaluate absent": "There is no folder and no run called",
    }.items():
        assert main(line.split()) == 2
        said = capsys.readouterr()
        assert sentence in said.err, line
        assert said.err.count("\n") == 1
    assert all_runs(root) == []


def test_runs_are_listed_and_found_by_their_words(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done, waits = tiny_run(root), tiny_run(root, lr=0.5)
    train_to_end(done.folder)
    (root / "broken-1").mkdir()
    (root / "broken-1" / "spec.json").write_text("{}")
    every = printed(capsys, "runs")
    assert [row["name"] for row in every] == ["broken-1", waits.name, done.name]
    assert "cannot be read" in every[0]["fault"]
    assert [row["name"] for row in printed(capsys, "runs", "done")] == [done.name]
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "damaged" in lines[0]


def test_any_checkpoint_of_a_run_is_measured_as_it_was_then(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tiny_run(root, task="sort")
    train_to_end(run.folder)
    values = dict(run.metrics().values())
    for step, folder in run.snapshots()[1:]:
        assert printed(capsys, "evaluate", str(folder))["value"] == pytest.approx(values[step])
    found = printed(capsys, "evaluate", run.name)
    assert (found["measure"], found["value"]) == ("exact match", run.status().value)
    assert found["held_out"]
    assert main(["evaluate", str(run.folder)]) == 0
    assert "On held-out data: exact match" in capsys.readouterr().out


def test_a_model_that_ships_without_its_text_is_measured_with_it_and_with_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = dataclasses.replace(RECIPES["reviews"], training={"steps": 1})
    monkeypatch.setitem(RECIPES, "reviews", few)
    rows = [f"a {word} film number {i},{word}" for i in range(30) for word in ("good", "bad")]
    table = tmp_path / "sentiment.csv"
    table.write_bytes("\r\n".join(["text,label", *rows, ""]).encode())
    (folder,) = make_shipped(["reviews"], tmp_path, tmp_path / "made")
    found = printed(capsys, "evaluate", str(folder), "--data", str(table))
    assert {found["measure"]: found["value"]} == peek(folder)[1]["metrics"]
    other = tmp_path / "other.csv"
    other.write_text(table.read_text() + "a film,good\n")
    for line, sentence in {
        (): "This model is measured on a part of sentiment.csv: name it with --data.",
        ("--data", str(other)): "is not the sentiment.csv that this model was trained on",
    }.items():
        assert main(["evaluate", str(folder), *line]) == 2
        said = capsys.readouterr().err
        assert sentence in said
        assert said.count("\n") == 1
    known = str(SHIPPED / "reverse")
    assert main(["evaluate", known, "--data", str(table)]) == 2
    assert "is known: leave --data out." in capsys.readouterr().err


def test_metrics_for_other_tools_are_those_of_the_run(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wishes = ["--layers", "1", "--metrics-csv", "--tensorboard"]
    ended = printed(capsys, "train", "reverse", *TINY, *wishes)
    assert (ended["name"], ended["state"], ended["step"]) == ("reverse-1", "done", 8)
    run = run_named(root, "reverse-1")
    with (run.folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    metrics = run.metrics()
    assert tuple(rows[0]) == COLUMNS
    assert [(int(r["step"]), float(r["loss"])) for r in rows if r["loss"]] == metrics.losses()
    found = events(run.folder / "tensorboard")
    for step, loss in metrics.losses():
        assert found["loss", step] == pytest.approx(loss)
    for step, value in metrics.values():
        assert found["held_out/exact_match", step] == pytest.approx(value)


def test_generate_and_resume_speak_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tiny_run(root)
    train_to_end(run.folder)
    said = printed(capsys, "generate", str(run.folder), "hello")
    assert set(said) == {"text", "ids"}
    paused = tiny_run(root)
    assert printed(capsys, "resume", str(paused.folder))["state"] == "done"
    assert Run(paused.folder).status().state == "done"
    assert write_csv(paused).read_text().startswith("step,loss")
