"""What a machine does to a run: a full disk, a death in mid-write, a clock set back."""

import errno
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from explorer.runs.run import RunError
from explorer.runs.worker import advance, train_to_end
from models import load_checkpoint
from tests.runs.test_worker import same, weights
from tests.served import ROOT
from tests.tiny import tiny_run

KILLED_IN_MID_WRITE = """
import os, signal, sys
import models.loading.checkpoint as checkpoint
from explorer.runs.worker import advance, lower_priority

lower_priority()  # as every process that trains: one thread
written = checkpoint.save_file

def half(tensors, path):
    if "step-000004" in str(path):
        path.write_bytes(b"half of it")
        os.kill(os.getpid(), signal.SIGKILL)
    written(tensors, path)

checkpoint.save_file = half
training = advance(sys.argv[1])
for progress in training:
    if progress.report.step == 4:
        training.close()
"""


def test_a_disk_that_fills_while_it_trains_is_a_sentence_and_the_run_goes_on_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    run = tiny_run(tmp_path)
    training = advance(run.folder)
    for _ in range(4):
        next(training)
    with monkeypatch.context() as filled:
        filled.setattr("models.loading.checkpoint.save_file", full)
        with pytest.raises(RunError, match="no space left on device"):
            list(training)
    status = run.status()
    assert status.state == "failed"
    assert str(tmp_path) not in status.message
    latest = run.latest()
    assert latest is not None
    load_checkpoint(latest)
    assert not list(run.folder.rglob(".step-*")), "nothing half-written is left"
    run.command("resume")
    assert train_to_end(run.folder) == "done"
    steps = [step for step, _ in run.metrics().losses()]
    assert steps == list(range(1, 13))


def test_a_worker_that_is_killed_while_it_writes_weights_resumes_to_the_bit(
    tmp_path: Path,
) -> None:
    run, whole = tiny_run(tmp_path), tiny_run(tmp_path)
    train_to_end(whole.folder)
    command = [sys.executable, "-c", KILLED_IN_MID_WRITE, str(run.folder)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert (run.status().state, run.status().steps_per_second) == ("interrupted", 0)
    for _, folder in run.snapshots():
        load_checkpoint(folder)
    assert train_to_end(run.folder) == "done"
    assert run.metrics().losses() == whole.metrics().losses()
    assert same(weights(run.checkpoint()), weights(whole.checkpoint()))


def test_a_clock_that_goes_backwards_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never asked: what counts seconds while a run trains only ever goes on."""
    hour = 3600.0
    began = time.time()
    backwards = iter(range(1_000_000))
    monkeypatch.setattr(time, "time", lambda: began - hour * next(backwards))
    run = tiny_run(tmp_path)
    assert train_to_end(run.folder) == "done"
    rows = [row.seconds for row in run.metrics().rows if row.seconds is not None]
    assert rows == sorted(rows)
    assert 0 <= run.status().seconds < hour
