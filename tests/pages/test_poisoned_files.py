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
STRINGS = re.compile(r'"[^"\n]*(?="[,\n\]])')
LIST = "lesson_list"
OFTEN = {
    *("overview/overview", "input/tokens", "experiments/circuits", "experiments/interventions"),
    *("models/checkpoints", "training/training", "training/runs", "lessons/lessons"),
}


class Poison:
    """Adds a bad text to strings; `count` is the number of strings so far."""

    def __init__(self, bad: str) -> None:
        self.count, self._bad = 0, bad

    def after(self, text: str) -> str:
        self.count += 1
        return text + self._bad

    def every(self, values: Any, free: set[str] | None, name: str = "") -> Any:
        """Every string of these values, or every one with such a name."""
        if isinstance(values, dict):
            return {key: self.every(value, free, key) for key, value in values.items()}
        if isinstance(values, list):
            return [self.every(value, free, name) for value in values]
        is_free = isinstance(values, str) and (free is None or name in free)
        return self.after(values) if is_free else values

    def file(self, path: Path) -> None:
        values = json.loads(path.read_text("utf-8"))
        path.write_text(json.dumps(self.every(values, FREE.get(path.name))), "utf-8")

    def copies(self, file: Path) -> None:
        """A copy for every string of the file: of the folder around JSON, or of the lesson."""
        text = file.read_text("utf-8")
        for at, found in enumerate(STRINGS.finditer(text)):
            new = text[: found.end()] + json.dumps(self.after(""))[1:-1] + text[found.end() :]
            if file.suffix == ".toml":
                file.with_name(f"bad-{at}.toml").write_text(new, "utf-8")
                continue
            copy = file.parent.with_name(f"{file.parent.name}{file.name[:2]}{at}")
            shutil.copytree(file.parent, copy)
            (copy / file.name).write_text(new, "utf-8")


def poisoned(world: Path, bad: str) -> int:
    """Add poisoned files of every kind to the whole ones; the number of their strings."""
    poison, run = Poison(bad), world / "runs" / "reverse-2"
    for name in ("translation", "reviews"):
        poison.copies(world / "models" / name / "config.json")
        copy = shutil.copytree(world / "models" / name, world / "models" / f"bad-{name}")
        poison.file(copy / "run.json")
    shutil.copytree(run.with_name("reverse-1"), run)
    for name in ("spec.json", "status.json", "notes.json"):
        poison.copies(run / name)
    for name in ("requested.json", "refused.json", "control.json"):
        words = {"command": "stop", "why": "a", "fault": "b", "step": 3, "lr": "c"}
        (run / name).write_text(json.dumps(words))
    for path in (*run.glob("*.json"), *run.glob("s*/*/run.json")):
        poison.file(path)
    poison.copies(world / "lessons" / "whole.toml")
    poison.file(world / "finding")
    return poison.count


def drawn(path: str, world: Path, **address: str) -> AppTest:
    if path == "experiments/circuits":
        apps.page(path, **address)
        at = apps.page(path, model="letters", pair_source="A finding")
        data = (world / "finding").read_bytes()
        at.file_uploader(key="finding_file").upload("finding.json", data, "application/json").run()
        assert not at.exception
        return at
    return apps.page(path, **address)


def of_whole_files(at: AppTest) -> list[object]:
    """What tables and the list of lessons say of files without a bad string."""
    lessons = [json.loads(view.proto.json) for view in at.get("bidi_component") if view.key == LIST]
    rows = [row for table in at.dataframe for row in table.value.to_dict("records")]
    rows += [row for rows in lessons for row in rows]
    return [row for row in rows if {"reverse-1", "letters", "whole"} & {*map(str, row.values())}]


@pytest.mark.usefixtures("at_the_machine")
@pytest.mark.parametrize(
    "bad", ["-".join(BAD), *(pytest.param(bad, marks=pytest.mark.thorough) for bad in BAD)]
)
def test_every_page_goes_on(
    bad: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
    subtests: pytest.Subtests,
) -> None:
    for name, folder in (("CHECKPOINTS", "models"), ("RUNS", "runs"), ("LESSONS", "lessons")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(f"EXPLORER_{name}", str(tmp_path / folder))
    save_small_models(tmp_path / "models")
    trained_run(tmp_path / "runs").note(RunNotes(("slow",), "the first try"))
    shutil.copy(TEMPLATE, tmp_path / "lessons" / "whole.toml")
    texts = ["--clean", "the cat", "--corrupted", "the hat", "--out", str(tmp_path / "finding")]
    assert main(["circuit", "--model", str(tmp_path / "models" / "letters"), *texts]) == 0
    lists = ("training/runs", "models/checkpoints", "lessons/lessons")
    before = {path: of_whole_files(drawn(path, tmp_path)) for path in lists}
    count = poisoned(tmp_path, bad)
    is_thorough = pytestconfig.getoption("--thorough")
    pages = OFTEN | {*map(path_of, PAGES)} if is_thorough else OFTEN
    for path in sorted(pages):
        for model in ("bad-translation", "bad-reviews")[: 2 if is_thorough else 1]:
            with subtests.test(path=path, model=model):
                at = drawn(path, tmp_path, model=model, run="reverse-2")
                assert visible(said(at)) == said(at)
                assert before.get(path, []) == of_whole_files(at)
    assert count * len(pages) > 1_000
