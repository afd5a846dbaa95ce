"""What tests of drawn pages start from."""

import shutil
from pathlib import Path

import pytest

from explorer.runs.run import Run
from tests.tiny import trained_run
from tests.views.fake_cluster import FakeCluster


@pytest.fixture(scope="session")
def twelve_steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run: snapshots 0, 1, 2, 3, 5, 7, 10 and 12. Each test has a copy of its own."""
    return trained_run(tmp_path_factory.mktemp("runs")).folder


@pytest.fixture
def run(
    at_the_machine: None, tmp_path: Path, twelve_steps: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    return Run(shutil.copytree(twelve_steps, tmp_path / twelve_steps.name))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCluster:
    """The app has no model, and runs that nothing trains."""
    monkeypatch.setenv("EXPLORER_RUNS", str(tmp_path))
    monkeypatch.setenv("EXPLORER_CHECKPOINTS", str(tmp_path / "none"))
    cluster = FakeCluster()
    monkeypatch.setattr("explorer.runs.cluster._cluster_of", lambda root: cluster)
    return cluster
