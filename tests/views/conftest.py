"""What tests of drawn pages start from."""

from pathlib import Path

import pytest

from explorer.runs.run import Run
from tests.tiny import trained_run
from tests.views.fake_cluster import FakeCluster


@pytest.fixture
def run(at_the_machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    return trained_run(tmp_path)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCluster:
    """The app has no model, and runs that nothing trains."""
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "none"))
    cluster = FakeCluster()
    monkeypatch.setattr("explorer.runs.cluster._cluster_of", lambda root: cluster)
    return cluster
