"""The linter, the formatter and the type checker have nothing to say."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.source import ROOT

COMMANDS = {
    "linter": ["ruff", "check", "."],
    "formatter": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_is_clean(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
