"""A process that opens the folders it is handed and tells how that went and what it cost.

A folder that ends the process, blocks it or fills the memory fails one test, not the run.
Each folder is followed by a good one, which must still open.
"""

from __future__ import annotations

import gc
import json
import resource
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.source import ROOT

PATIENCE = 30
LONGEST, MOST_MEGABYTES, LONGEST_SENTENCE = 1.0, 100, 300


@dataclass(frozen=True)
class Answer:
    """`error` is the name of what was raised, or None; `megabytes` what the peak grew by.

    `working` are the seconds in which the process had a core.
    """

    error: str | None
    sentence: str
    seconds: float
    working: float
    megabytes: float
    then_opened: bool


class Opener:
    """The process, seen from the test."""

    def __init__(self, good: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.models.opening", str(good)],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, folder: Path) -> Answer:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(str(folder)) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        assert ready, "opening the folder blocks"
        line = self._process.stdout.readline()
        assert line, f"opening the folder ended the process with {self._process.wait()}"
        return Answer(**json.loads(line))

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def refused(opener: Opener, folder: Path) -> str:
    """The sentence with which the folder is refused, in time, in little memory, and fit to show."""
    answer = opener.ask(folder)
    if answer.seconds > LONGEST:  # another process may have had the core
        answer = opener.ask(folder)
    sentence = answer.sentence
    assert answer.error == "CheckpointError", f"{answer.error}: {sentence}"
    assert answer.then_opened, "a good folder opens no more"
    assert min(answer.seconds, answer.working) < LONGEST
    assert answer.seconds < 5 * LONGEST, "waiting for a busy machine included"
    assert answer.megabytes < MOST_MEGABYTES
    check_sentence(sentence, folder)
    return sentence


def check_sentence(sentence: str, folder: Path) -> None:
    """One line that ends as sentences do, is soon read, and says nothing of this machine."""
    assert sentence.isprintable(), "a sentence is one line without control characters"
    assert sentence[0].strip()
    assert sentence.endswith(".")
    assert not sentence.endswith("..")
    assert len(sentence) < LONGEST_SENTENCE
    assert str(folder.parent) not in sentence, "a path of the server is nobody's business"
    assert "Errno" not in sentence


def attempt(folder: str) -> dict[str, Any]:
    from models import load_checkpoint

    error = None
    before = time.perf_counter(), time.process_time()
    try:
        load_checkpoint(folder)
    except BaseException as raised:  # noqa: BLE001  (which one it is, is what is asked)
        error = raised
    after = time.perf_counter(), time.process_time()
    return {
        "error": type(error).__name__ if error else None,
        "sentence": str(error or ""),
        "seconds": after[0] - before[0],
        "working": after[1] - before[1],
    }


def peak() -> float:
    """Megabytes of memory that the process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def serve(good: str) -> None:
    import torch

    torch.set_num_threads(1)
    attempt(good)
    attempt(good + "-none")
    gc.collect()
    gc.freeze()  # as the app does once it is warm: a third of an opening is spent in collections
    at_rest = peak()
    for line in sys.stdin:
        answer = attempt(json.loads(line))
        answer["megabytes"] = peak() - at_rest
        answer["then_opened"] = attempt(good)["error"] is None
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
