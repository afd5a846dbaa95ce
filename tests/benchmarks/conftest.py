"""A benchmark runs alone: in a fresh process, without the checks the other tests carry.

The test function named in the report is not run here but by a second pytest that
runs only it, so a figure never depends on which tests came before.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MEASURING = "EXPLORER_MEASURING"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mine = [item for item in items if item.path.is_relative_to(HERE)]
    for item in mine:
        item.add_marker(pytest.mark.bench)
        item.add_marker(pytest.mark.timeout(600))
    items[:] = [item for item in items if item not in mine] + mine


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if os.environ.get(MEASURING) or not pyfuncitem.get_closest_marker("bench"):
        return None
    child = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", pyfuncitem.nodeid],
        env={**os.environ, MEASURING: "1"},
        cwd=pyfuncitem.config.rootpath,
        capture_output=True,
        text=True,
    )
    figures = [line for line in child.stdout.splitlines() if ": measured " in line]
    print("\n".join(figures))
    if child.returncode:
        pytest.fail(child.stdout[-6000:] + child.stderr[-2000:], pytrace=False)
    pyfuncitem.config.stash.setdefault(FIGURES, []).extend(figures)
    return True


FIGURES = pytest.StashKey[list[str]]()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if figures := config.stash.get(FIGURES, []):
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.line(line.strip().lstrip("."))
