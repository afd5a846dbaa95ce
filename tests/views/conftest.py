"""What tests of drawn pages start from."""

from pathlib import Path

import pytest

from explorer.runs.run import Run
from explorer.runs.worker import train_to_end
from tests.tiny import tiny_run
from tests.views.fake_cluster import FakeCluster


@pytest.fixture
def run(at_the_machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Trained for twelve steps: snapshots 0, 1, 2, 3, 5, 7, 10 and 12."""
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    run = tiny_run(tmp_path)
    train_to_end(run.folder)
    return run


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCluster:
    """The app has no model, and runs that nothing trains."""
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "none"))
    cluster = FakeCluster()
    monkeypatch.setattr("explorer.runs.cluster._cluster_of", lambda root: cluster)
    return cluster
