"""Characters that are no text, in every string of every kind of file: each page goes on.

They are half characters, control characters, and lone marks of direction. What is said of a whole
file stays the same beside the others.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.__main__ import main
from explorer.commands.lesson_commands import TEMPLATE
from explorer.runs.spec import RunNotes
from models.file_text import visible
from tests import apps
from tests.apps import said
from tests.tiny import save_small_models, trained_run
from tests.views.drawing import PAGES, path_of

BAD = "\ud800 \udfffb \0 \x1b]0;x\x07\x1b[31m \u202eb \u2068 \x9b31m \u200f".split(" ")
FREE = {
    "spec.json": {"parent"},
    "status.json": {"message"},
    "notes.json": {"note", "sweep_title"},
    "finding": {"model", "kind", "head", "answer", "against", "clean_tokens", "names"},
}
"""The strings of a file that may be anything; another one that is wrong can refuse the file."""
LISTS = ("training/runs", "models/checkpoints", "lessons/lessons")


def poison(values: Any, bad: str, free: set[str] | None, name: str = "") -> Any:
    """Add it to every string of these values, or to every one with such a name."""
    if isinstance(values, dict):
        return {key: poison(value, bad, free, key) for key, value in values.items()}
    if isinstance(values, list):
        return [poison(value, bad, free, name) for value in values]
    is_free = isinstance(values, str) and (free is None or name in free)
    return values + bad if is_free else values


def poison_file(path: Path, bad: str) -> None:
    values = poison(json.loads(path.read_text("utf-8")), bad, FREE.get(path.name))
    path.write_text(json.dumps(values), "utf-8")


def poison_copies(file: Path, bad: str) -> None:
    """A copy of the folder, or of the lesson, for each string of the file."""
    text, whole = file.read_text("utf-8"), file if file.suffix == ".toml" else file.parent
    for at, found in enumerate(re.compile(r'"[^"\n]*(?="[,\n\]])').finditer(text)):
        copy = whole.with_name(f"{whole.stem}-{file.stem}-{at}{whole.suffix}")
        (shutil.copy if whole == file else shutil.copytree)(whole, copy)
        new = text[: found.end()] + json.dumps(bad)[1:-1] + text[found.end() :]
        (copy if whole == file else copy / file.name).write_text(new, "utf-8")


def poison_world(world: Path, bad: str) -> int:
    """Add poisoned files of every kind to the whole ones; the number of their strings."""
    for name in ("translation", "reviews"):
        poison_copies(world / "models" / name / "config.json", bad)
        copy = shutil.copytree(world / "models" / name, world / "models" / f"bad-{name}")
        poison_file(copy / "run.json", bad)
    run = shutil.copytree(world / "runs" / "reverse-1", world / "runs" / "reverse-2")
    for name in ("spec.json", "status.json", "notes.json"):
        poison_copies(run / name, bad)
    for name in ("requested.json", "refused.json", "control.json"):
        words = {"command": "stop", "why": "a", "fault": "b", "step": 3, "lr": "c"}
        (run / name).write_text(json.dumps(words))
    poison_copies(world / "lessons" / "whole.toml", bad)
    for path in (*run.glob("*.json"), *run.glob("s*/*/run.json"), world / "finding"):
        poison_file(path, bad)
    files = (*world.rglob("*.*son"), *world.rglob("*.toml"), world / "finding")
    return sum(path.read_text("utf-8").count(json.dumps(bad)[1:]) for path in files)


def drawn(path: str, world: Path, **address: str) -> AppTest:
    at = apps.page(path, **address)
    if path == "experiments/circuits":
        at = apps.page(path, model="letters", pair_source="A finding")
        data = (world / "finding").read_bytes()
        at.file_uploader(key="finding_file").upload("finding.json", data, "application/json").run()
        assert not at.exception
    return at


def of_whole_files(at: AppTest) -> list[object]:
    """What tables and the list of lessons say of files without a bad string."""
    lists = (view for view in at.get("bidi_component") if view.key == "lesson_list")
    rows = [row for table in at.dataframe for row in table.value.to_dict("records")]
    rows += [row for view in lists for row in json.loads(view.proto.json)]
    return [row for row in rows if {"reverse-1", "letters", "whole"} & {*map(str, row.values())}]


@pytest.mark.usefixtures("at_the_machine")
@pytest.mark.parametrize(
    "bad", ["-".join(BAD), *(pytest.param(bad, marks=pytest.mark.thorough) for bad in BAD)]
)
def test_every_page_goes_on(
    bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for name, folder in (("CHECKPOINTS", "models"), ("RUNS", "runs"), ("LESSONS", "lessons")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(f"EXPLORER_{name}", str(tmp_path / folder))
    save_small_models(tmp_path / "models")
    trained_run(tmp_path / "runs").note(RunNotes(("slow",), "the first try"))
    shutil.copy(TEMPLATE, tmp_path / "lessons" / "whole.toml")
    texts = ["--clean", "the cat", "--corrupted", "the hat", "--out", str(tmp_path / "finding")]
    assert main(["circuit", "--model", str(tmp_path / "models" / "letters"), *texts]) == 0
    before = {path: of_whole_files(drawn(path, tmp_path)) for path in LISTS}
    assert before["training/runs"]
    assert before["lessons/lessons"]
    count = poison_world(tmp_path, bad)
    is_thorough, pages = request.config.getoption("--thorough"), {*LISTS, *map(path_of, PAGES)}
    for path in sorted(pages):
        for model in ("bad-translation", "bad-reviews")[: 1 + is_thorough]:
            at = drawn(path, tmp_path, model=model, run="reverse-2")
            assert visible(said(at)) == said(at), path
            assert before.get(path, []) == of_whole_files(at), path
    assert count * len(pages) >= 5_000, count
