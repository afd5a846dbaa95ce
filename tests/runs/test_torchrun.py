"""A training in two processes that torchrun starts: the updates of one with the whole batch."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import torch

from explorer.runs.run import Run, create_in
from explorer.runs.worker import train_to_end
from models import load_checkpoint
from tests.served import ROOT, wait_until
from tests.tiny import tiny_spec

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def resumed_by_two(run: Run) -> subprocess.Popen[bytes]:
    """Two processes that go on with this run."""
    command = [sys.executable, *TORCHRUN, "-m", "explorer", "resume", str(run.folder), "--json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)


def without_dropout(folder: Path, steps: int) -> Run:
    """By SGD: Adam makes as much of a gradient that is zero but for rounding as of any other."""
    spec = tiny_spec(steps=steps, batch_size=5, accumulation=2, optimizer="sgd", lr=0.1)
    return create_in(folder, replace(spec, model=spec.model.replace(dropout=0.0)))


def test_two_processes_make_the_updates_of_one(tmp_path: Path) -> None:
    """Shares of three and two texts, in parts, with another rate from the second update on."""
    one, two = (without_dropout(tmp_path / name, 8) for name in ("one", "two"))
    for run in (one, two):
        run.command("step")
        assert train_to_end(run.folder) == "paused"
        run.change(lr=0.05)
    one.command("resume")
    assert train_to_end(one.folder) == "done"
    resumed = resumed_by_two(two)
    assert resumed.wait(60) == 0
    assert two.status().state == "done"
    for (step, loss), (of_one, expected) in zip(
        two.metrics().losses(), one.metrics().losses(), strict=True
    ):
        assert step == of_one
        assert abs(loss - expected) <= 1e-5
    weights = [load_checkpoint(run.folder / "checkpoint").model.state_dict() for run in (one, two)]
    torch.testing.assert_close(weights[1], weights[0], rtol=1e-5, atol=1e-5)


def test_two_processes_are_interrupted_with_their_state_saved(tmp_path: Path) -> None:
    run = without_dropout(tmp_path / "run", 1_000_000)
    both = resumed_by_two(run)
    wait_until(lambda: run.status().step > 3, "the fourth step")
    both.send_signal(signal.SIGTERM)
    both.wait(60)
    assert run.status().state == "interrupted"
    assert run.status().step > 3
    assert run.checkpoint() is not None
