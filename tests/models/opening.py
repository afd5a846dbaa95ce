"""A process that opens the folders it is handed and reports how that went.

A folder that ends the process, blocks it or fills the memory fails a test, not the run.
"""

from __future__ import annotations

import gc
import resource
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from models import load_checkpoint

PATIENCE = 60
"""Seconds until a folder counts as one that hangs the process."""
MOST_MEGABYTES, LONGEST_SENTENCE = 100, 300
SPAWN = get_context("spawn")

Damage = Callable[[Path], object]
Cases = dict[str, tuple[Damage, str]]
"""What is done to a good folder, and words of the sentence that says so."""


@dataclass(frozen=True)
class Answer:
    """`error` is the name of what was raised, or None; `megabytes` what the peak grew by."""

    error: str | None
    sentence: str
    megabytes: float


class Opener:
    """The process, seen from the test. One that died, hangs or grew is replaced."""

    def __init__(self, good: Path) -> None:
        self.good = good
        self._start()

    def _start(self) -> None:
        self._ours, theirs = SPAWN.Pipe()
        self._process = SPAWN.Process(target=serve, args=(theirs, self.good), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, folder: Path) -> Answer:
        self._ours.send(folder)
        fault, answer = "opening the folder blocks", None
        if self._ours.poll(PATIENCE):
            try:
                fault, answer = "opening the folder fills the memory", self._ours.recv()
            except EOFError:
                fault = "opening the folder ended the process"
        if answer is None or answer.megabytes >= MOST_MEGABYTES:  # the peak never falls
            self.close()
            self._start()
            raise AssertionError(fault)
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.join()


def refused(opener: Opener, folder: Path) -> str:
    """The sentence with which the folder is refused, in little memory, and fit to show."""
    answer = opener.ask(folder)
    assert answer.error == "CheckpointError", f"{answer.error}: {answer.sentence}"
    check_sentence(answer.sentence, folder)
    return answer.sentence


def not_refused_as_told(opener: Opener, good: Path, cases: Cases) -> list[str]:
    """The damages to a good folder that do not end in their sentence, and what came instead.

    A good folder must still open afterwards.
    """
    found, folder = [], good.parent / "damaged" / "one"
    for name, (damage, words) in cases.items():
        shutil.copytree(good, folder)
        damage(folder)
        try:
            sentence = refused(opener, folder)
            assert words in sentence, sentence
        except AssertionError as error:
            found.append(f"{name}: {error}")
        shutil.rmtree(folder.parent)
    assert opener.ask(opener.good).error is None, "a good folder opens no more"
    return found


def check_sentence(sentence: str, folder: Path) -> None:
    """One line that ends as sentences do, is soon read, and says nothing of this machine."""
    assert sentence.isprintable(), f"control characters in {sentence!r}"
    assert sentence[:1].strip(), f"no beginning: {sentence!r}"
    assert sentence.endswith("."), sentence
    assert not sentence.endswith(".."), sentence
    assert len(sentence) < LONGEST_SENTENCE, sentence
    assert str(folder.parent) not in sentence, f"tells a path of the server: {sentence}"
    assert "Errno" not in sentence, sentence
    sentence.encode()  # it can be sent


def attempt(folder: Path) -> tuple[str | None, str]:
    try:
        load_checkpoint(folder)
    except BaseException as error:  # noqa: BLE001  (which one it is, is what is asked)
        return type(error).__name__, str(error)
    return None, ""


def peak() -> float:
    """Megabytes of memory that the process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def serve(asked: Connection, good: Path) -> None:
    """What the process does until it is killed."""
    torch.set_num_threads(1)
    attempt(good)
    gc.collect()
    gc.freeze()  # as the app does once it is warm: a third of an opening is spent in collections
    at_rest = peak()
    while True:
        error, sentence = attempt(asked.recv())
        asked.send(Answer(error, sentence, peak() - at_rest))
