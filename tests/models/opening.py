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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Any

from tests.source import ROOT

PATIENCE = 60
"""Seconds after which an opening is taken to hang."""
MOST_MEGABYTES, LONGEST_SENTENCE = 100, 300


@dataclass(frozen=True)
class Answer:
    """`error` is the name of what was raised, or None; `megabytes` what the peak grew by."""

    error: str | None
    sentence: str
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
    """The sentence with which the folder is refused, in little memory, and fit to show."""
    answer = opener.ask(folder)
    sentence = answer.sentence
    assert answer.error == "CheckpointError", f"{answer.error}: {sentence}"
    assert answer.then_opened, "a good folder opens no more"
    assert answer.megabytes < MOST_MEGABYTES
    check_sentence(sentence, folder)
    return sentence


def all_refused(
    opener: Opener, good: Path, cases: Mapping[str, tuple[Callable[[Path], object], str]]
) -> list[str]:
    """What is wrong with the refusal of a copy of a good folder, for each damage done to one."""
    faults = []
    for at, (name, (damage, words)) in enumerate(cases.items()):
        folder = Path(copytree(good, good.parent / f"damaged-{at}" / "one"))
        damage(folder)
        try:
            sentence = refused(opener, folder)
        except AssertionError as error:
            faults.append(f"{name}: {error}")
        else:
            if words not in sentence:
                faults.append(f"{name}: {sentence}")
    return faults


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
    try:
        load_checkpoint(folder)
    except BaseException as raised:  # noqa: BLE001  (which one it is, is what is asked)
        error = raised
    return {"error": type(error).__name__ if error else None, "sentence": str(error or "")}


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
