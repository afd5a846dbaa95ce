"""Who meets the limit of taking an update of a run apart: the model is too large."""

from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.runs.worker import train_to_end
from tests import apps
from tests.runs.making import tiny_run


def inside_bytes(
    at_the_machine: None, small_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    run = tiny_run(tmp_path, steps=2)
    train_to_end(run.folder)
    monkeypatch.setenv("EXPLORER_LIMIT_INSIDE_BYTES", "1000")
    return apps.said(apps.page("training/inside_training", run=run.name))


MEETINGS: dict[str, Callable[..., str]] = {"inside_bytes": inside_bytes}
