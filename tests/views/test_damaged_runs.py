"""Every file of a run's folder, damaged in every way: each page of a run says so and goes on."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.runs.run import create
from explorer.runs.worker import train_to_end
from explorer.tasks import task_of
from explorer.views.inside_training import landscape_view, over_snapshots
from tests import apps
from tests.browser.page_views import CHOICES
from tests.grids import grid
from tests.tiny import labelled_table, tiny_spec, trained_run

pytestmark = pytest.mark.usefixtures("at_the_machine", "cluster")
FILES = (
    *("spec.json", "status.json", "text", "metrics.jsonl", "control.json", "notes.json"),
    *(f"snapshots/step-000000/{name}" for name in ("config.json", "run.json", "tokenizer.json")),
    *("snapshots/step-000000/model.safetensors", "latest", "checkpoint/config.json"),
)
PAGES = ("training", "inside_training", "training_history", "runs")
VIEWS = [(page, view) for page in PAGES for view in CHOICES[page][1]]
HOW = ("cut", "empty", "another type", "missing", "a folder", "another run's", "another task")


@pytest.fixture(autouse=True)
def _few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here reads a number, so what takes many passes takes a few."""
    monkeypatch.setattr(landscape_view, "SIDE", 3)
    monkeypatch.setattr(over_snapshots, "BATCHES", 2)


def damage(path: Path, other: Path, how: str) -> None:
    data = b"" if how == "empty" else b'[{"task": [], "state": -1}, "\\u0000"]\n'
    if not how:
        return
    if how == "cut" and path.is_file():
        data = path.read_bytes()[: path.stat().st_size // 2]
    elif how == "another task" and path.is_file():
        data = re.sub(b'(?<="task": ")[a-z]+', b"reverse-encoder", path.read_bytes())
    elif how == "another run's" and other.is_file():
        data = other.read_bytes()
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if how == "a folder":
        path.mkdir()
    elif how != "missing":
        path.write_bytes(data)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A trained run of each of two tasks, one of which has a text."""
    root, text = tmp_path_factory.mktemp("whole"), labelled_table()
    task, tiny = task_of("sentences", text), tiny_spec("reverse", steps=3)
    sizes = {name: getattr(tiny.model, name) for name in ("d_model", "n_heads", "d_ff", "n_layers")}
    spec = replace(tiny, task=task.name, model=task.model.replace(**sizes, sink_logit=True))
    run = create(root, spec, text)
    assert train_to_end(run.folder) == "done"
    return {"sentences": run.folder, "reverse": trained_run(root, steps=3).folder}


def test_another_task_or_a_cut_text_is_one_sentence(whole: dict[str, Path], tmp_path: Path) -> None:
    for file in ("spec.json", "text"):
        run = shutil.copytree(whole["sentences"], tmp_path / f"sentences-{len(file)}")
        damage(run / "spec.json", run, "another task" if file == "spec.json" else "")
        (run / "text").write_bytes((run / "text").read_bytes()[: -2 if file == "text" else None])
        for page in ("training", "inside_training"):
            at = apps.page(f"training/{page}", run=run.name, model=run.name)
            assert "does not read the task" in apps.said(at), (page, file)
    damage(run / "text", run, "a folder")  # what the form compares itself with
    apps.page("training/training", run=run.name)
    apps.page("training/runs", runs=["sentences-9", "sentences-4"])  # both have sinks to draw


@grid("name, file, how, view", ("sentences", "reverse"), FILES, HOW, VIEWS, pairs=False)
def test_a_damaged_file_brings_down_no_page(
    name: str, file: str, how: str, view: tuple[str, str], whole: dict[str, Path], tmp_path: Path
) -> None:
    run = tmp_path / f"{name}-1"
    shutil.copytree(whole[name], run)
    damage(run / file, whole["reverse" if name == "sentences" else "sentences"] / file, how)
    page, shown = view
    address = {"run": run.name, "model": run.name, "runs": run.name, CHOICES[page][0]: shown}
    apps.page(f"training/{page}", **address)
