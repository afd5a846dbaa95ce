"""The README and SECURITY.md say what is so: commands, tables, pictures, links, tests."""

import ast
import re
import shlex
import stat
import tomllib
from functools import cache

from docs import readme
from explorer.__main__ import _parser
from explorer.runs.settings import spec_of
from explorer.tasks import TASKS
from models.presets import PAPER_TRAINING
from tests.source import ROOT, files
from tests.test_requirements import normal, required

TEXT = readme.README.read_text("utf-8")
START = TEXT.split("## The models")[0]
COMMANDS = re.findall(r"^```bash\n(.+)\n```$", START, re.MULTILINE)


def test_it_opens_with_a_picture_and_its_commands() -> None:
    found = re.search(r"^!\[.+\]\((docs/.+\.webp)\)$", START.splitlines()[2])
    assert found, "a moving picture"
    assert (ROOT / found[1]).stat().st_size < 3_000_000
    app, tests, lint = COMMANDS
    assert app.endswith("streamlit run app.py")
    assert tests.endswith("pytest")
    assert "ruff check" in lint


def test_the_machine_that_checks_runs_the_other_commands() -> None:
    script = ROOT / ".ci" / "run"
    lines = script.read_text("utf-8").splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines
    assert lines[-2:] == COMMANDS[1:]
    assert script.stat().st_mode & stat.S_IXUSR


def test_tables_come_from_the_code() -> None:
    pages = {page: page.read_text("utf-8") for page in readme.PAGES}
    stale = [page.name for page, text in pages.items() if readme.filled(text) != text]
    assert stale == [], "run: python -m docs.readme"
    assert {name for text in pages.values() for name in readme.blocks_of(text)} == {*readme.BLOCKS}


def test_what_they_link_to_is_there() -> None:
    for page in (readme.README, readme.SECURITY, ROOT / "docs" / "public_server.md"):
        targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text("utf-8"))
        assert targets, page.name
        assert [target for target in targets if not (page.parent / target).is_file()] == []


def test_each_row_of_the_threat_model_names_tests_that_exist() -> None:
    proofs = tomllib.loads(readme.SECURITY_TESTS.read_text("utf-8"))
    rows = re.findall(r"^\| ([A-Z]\d+) \|", readme.SECURITY.read_text("utf-8"), re.MULTILINE)
    assert rows == [row for row, tests in proofs.items() if tests]
    named = [test.split("::") for tests in proofs.values() for test in tests]
    assert [f"{path}::{name}" for path, name in named if name not in defined(path)] == []


@cache
def defined(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_dependency_has_its_reason() -> None:
    section = TEXT.split("## What it stands on")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([a-z0-9_, -]+) \|", section, re.MULTILINE)
    table = {normal(package) for cell in cells for package in cell.split(", ")}
    assert table == set(required("requirements.txt"))
    for package in required("requirements-dev.txt"):
        assert package in section


def test_training_like_the_paper_is_the_papers() -> None:
    """But for what the page says stays the task's, and the number of steps."""
    text = (ROOT / "docs" / "how_to" / "train.md").read_text("utf-8")
    (line,) = re.findall("-m explorer (train .* --like paper .*)", text.replace("\\\n", ""))
    asked = vars(_parser().parse_args(shlex.split(line)))
    task = TASKS[asked["task"]]
    own = {"steps", "batch_size", "lr", "warmup", "clip"}
    kept = {name: getattr(task.training, name) for name in own}
    assert spec_of(task, asked).training == PAPER_TRAINING.replace(**kept)


def test_pictures_are_small() -> None:
    pictures = [path for path in files() if path.suffix == ".png"]
    assert all((ROOT / path).stat().st_size <= 400_000 for path in pictures)
    assert sum((ROOT / path).stat().st_size for path in pictures) <= 1_500_000
