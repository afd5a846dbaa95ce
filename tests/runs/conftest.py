"""A folder of runs for each test of the processes that train."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.served import processes_of


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of runs whose processes can be found by it, and are gone afterwards."""
    root = tmp_path / "runs"
    monkeypatch.setenv("EXPLORER_RUNS", str(root))
    monkeypatch.delenv("DASK_ADDRESS", raising=False)
    yield root
    left = processes_of(root)
    for process in left:
        process.kill()
    psutil.wait_procs(left, 10)
