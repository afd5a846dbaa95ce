"""The house stands as designed: which room may know which, and what lies where."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.source import ROOT, files, imports, python_files

ROOMS = {"app", "pages", "explorer", "models", "tests", "docs"}
MAY_KNOW = {
    "app.py": {"explorer", "models"},
    "pages": {"explorer", "models"},
    "explorer": {"explorer", "models"},
    "models": {"models"},
    "tests": ROOMS,
    "docs": ROOMS,
}
CORE_KNOWS = {"torch", "safetensors", "jaxtyping"}
ABOUT_THE_SCREEN = {
    "shell.py",
    "session.py",
    "shelves.py",
    "tables.py",
    "waiting.py",
    "widgets.py",
    "choices.py",
    "cutting.py",
    "head_table.py",
    "components",
    "training",
    "checkpoints",
    "bench",
}
TOP = {
    ".ci",
    ".gitattributes",
    ".gitignore",
    ".streamlit",
    "LICENSE",
    "README.md",
    "app.py",
    "docs",
    "explorer",
    "models",
    "pages",
    "pyproject.toml",
    "requirements-dev.txt",
    "requirements.txt",
    "tests",
}
LONGEST_FILE = 300
NEVER_IN_PYTHON = {
    r"\btorch\.load\b": "pickled weights run code",
    r"^\s*(import|from) pickle\b": "pickles run code",
    r"unsafe_allow": "text from outside would become markup",
    r"\bst\.html\(": "text from outside would become markup",
    r"(?<![.\w])(eval|exec)\(": "text from outside would become code",
}
NEVER_IN_A_BROWSER = {
    r"\b(inner|outer)HTML\b": "text from outside would become markup",
    r"\binsertAdjacentHTML\b": "text from outside would become markup",
    r"\bdocument\.write\b": "text from outside would become markup",
    r"\beval\(|\bnew Function\b": "text from outside would become code",
    r"https?://(?!www\.w3\.org/)": "nothing is fetched from outside",
}

APP = python_files("app.py", "pages", "explorer", "models")
BROWSER = [path for path in files() if path.suffix in {".js", ".css", ".html"}]


def name(path: Path) -> str:
    return path.as_posix()


@pytest.mark.parametrize("path", python_files(), ids=name)
def test_imports_run_one_way(path: Path) -> None:
    known = {module.partition(".")[0] for module in imports(path)} & ROOMS
    assert known <= MAY_KNOW[path.parts[0]]


@pytest.mark.parametrize("path", python_files("models"), ids=name)
def test_the_core_needs_little(path: Path) -> None:
    known = {module.partition(".")[0] for module in imports(path)} - {"models"}
    assert known - set(sys.stdlib_module_names) <= CORE_KNOWS


@pytest.mark.parametrize("path", python_files("explorer"), ids=name)
def test_few_files_know_the_screen(path: Path) -> None:
    if path.parts[1] not in ABOUT_THE_SCREEN:
        assert not any(module.partition(".")[0] == "streamlit" for module in imports(path))


def test_the_root_holds_what_was_agreed() -> None:
    assert {path.parts[0] for path in files()} <= TOP


@pytest.mark.parametrize(
    "path", [path for path in files() if path.suffix in {".py", ".js", ".css"}], ids=name
)
def test_a_file_can_be_read_in_one_sitting(path: Path) -> None:
    assert len((ROOT / path).read_text("utf-8").splitlines()) <= LONGEST_FILE


def test_an_address_belongs_to_one_page() -> None:
    names = Counter(path.stem for path in python_files("pages") if path.stem != "__init__")
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize("path", APP, ids=name)
def test_nothing_dangerous_is_written(path: Path) -> None:
    text = (ROOT / path).read_text("utf-8")
    for pattern, reason in NEVER_IN_PYTHON.items():
        assert not re.search(pattern, text, re.MULTILINE), f"{pattern}: {reason}"


@pytest.mark.parametrize("path", BROWSER, ids=name)
def test_nothing_dangerous_reaches_the_browser(path: Path) -> None:
    text = (ROOT / path).read_text("utf-8")
    for pattern, reason in NEVER_IN_A_BROWSER.items():
        assert not re.search(pattern, text), f"{pattern}: {reason}"


def test_shipped_models_are_small() -> None:
    sizes: Counter[str] = Counter()
    for path in files():
        if path.parts[:2] == ("models", "checkpoints") and len(path.parts) > 3:
            sizes[path.parts[2]] += (ROOT / path).stat().st_size
    assert max(sizes.values(), default=0) <= 8_000_000
    assert sizes.total() <= 20_000_000
