"""Opening a published folder, from the import of the library to a model that can read."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from statistics import median

from tests.benchmarks import published
from tests.benchmarks.figure import milliseconds, report
from tests.source import ROOT

BAR = 0.5
ROUNDS = 2
ONE_THREAD = "import sys, torch; torch.set_num_threads(1); "
OURS = ONE_THREAD + "from models import load_checkpoint; load_checkpoint(sys.argv[1])"
THEIRS = ONE_THREAD + (
    "from transformers import GPT2LMHeadModel; GPT2LMHeadModel.from_pretrained(sys.argv[1])"
)


def seconds_of(program: str) -> float:
    """Processor time of a fresh Python that runs the program on the folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", program, str(published.folder())],
        cwd=ROOT,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_opening() -> None:
    pairs = [(seconds_of(OURS), seconds_of(THEIRS)) for _ in range(ROUNDS + 1)][1:]
    ours, theirs = (median(side) for side in zip(*pairs, strict=True))
    times = median(mine / other for mine, other in pairs)
    report(
        f"opening the folder of {published.TITLE}, imports included",
        f"{milliseconds(ours)}, {times:.2f} ×",
        f"{milliseconds(theirs)} of transformers from_pretrained",
        f"{BAR} ×",
    )
    assert times <= BAR
