"""What tests of drawn pages start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.views.desk import Desk


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Desk:
    """The app has no model, and runs that nothing trains."""
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "none"))
    desk = Desk()
    monkeypatch.setattr("explorer.runs.cluster._cluster_of", lambda root: desk)
    return desk
