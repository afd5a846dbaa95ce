"""A process that opens the folders it is handed and reports how that went.

A folder that ends the process, blocks it or fills the memory fails a test, not the run.
"""

import gc
import json
import resource
import select
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.models.loading.hostile import Cases
from tests.source import ROOT

if TYPE_CHECKING:
    from torch import Tensor

PATIENCE = 60
"""Seconds until a folder counts as one that hangs the process."""
MOST_MEGABYTES, LONGEST_SENTENCE = 100, 300


@dataclass(frozen=True)
class Answer:
    """`error` is the name of what was raised, or None; `megabytes` what the peak grew by.

    `read` is how many bytes were read, and `differs` names a tensor of an opened folder that
    another library reads otherwise.
    """

    error: str | None
    sentence: str
    megabytes: float
    read: int
    differs: str


class Opener:
    """The process, seen from the test. One that died or grew is replaced."""

    def __init__(self, good: Path) -> None:
        self.good = good
        self._process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        call = [sys.executable, "-m", "tests.models.loading.opening", str(self.good)]
        pipe = subprocess.PIPE
        return subprocess.Popen(call, cwd=ROOT, text=True, stdin=pipe, stdout=pipe)

    def restart(self) -> None:
        self.close()
        self._process = self._started()

    def ask(self, folder: Path) -> Answer:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(str(folder)) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self.restart()
        assert ready, "opening the folder blocks"
        assert line, "opening the folder ended the process"
        answer = Answer(**json.loads(line))
        if answer.megabytes >= MOST_MEGABYTES:
            self.restart()  # the peak of a process never falls
        assert answer.megabytes < MOST_MEGABYTES, "opening the folder fills the memory"
        assert answer.differs == "", "another library reads it otherwise"
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def check_refused(answer: Answer, folder: Path) -> str:
    """The sentence with which the folder is refused, fit to show."""
    assert answer.error == "CheckpointError", f"{answer.error}: {answer.sentence}"
    check_sentence(answer.sentence, folder)
    return answer.sentence


def refused(opener: Opener, folder: Path) -> str:
    return check_refused(opener.ask(folder), folder)


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


def attempt(folder: str) -> dict[str, object]:
    from models import load_checkpoint

    error, before = None, bytes_read()
    try:
        load_checkpoint(folder)
    except BaseException as raised:  # noqa: BLE001  (which one it is, is what is asked)
        error = raised
    return {
        "error": type(error).__name__ if error else None,
        "sentence": str(error or ""),
        "read": bytes_read() - before,
        "differs": "" if error else differs(Path(folder)),
    }


def differs(folder: Path) -> str:
    """The first tensor of an opened folder that is not as another library reads it."""
    from models.loading.safe_files import CheckpointError
    from models.loading.weight_files import open_weights

    weights = open_weights(folder)
    theirs = read_by_a_library(weights.folder)
    with weights.open() as read:
        for name in weights.names:
            with suppress(CheckpointError):  # of a type that no weight has, and not used
                if name not in theirs or not read(name).equal(theirs[name]):
                    return name
    return ""


def read_by_a_library(place: Path) -> "dict[str, Tensor]":
    import torch
    from safetensors.torch import load

    files = [place] if place.is_file() else [*place.glob("*.gguf")]
    if not files:
        shards = place.glob("*.safetensors")
        return {name: each for path in shards for name, each in load(path.read_bytes()).items()}
    from gguf import GGUFReader
    from gguf.quants import dequantize

    return {
        each.name: torch.from_numpy(dequantize(each.data, each.tensor_type).copy())
        .float()
        .view(*map(int, each.shape[::-1]))
        for each in GGUFReader(files[0]).tensors
    }


def bytes_read() -> int:
    """Bytes that the process ever read."""
    return int(Path("/proc/self/io").read_text().split()[1])


def peak() -> float:
    """Megabytes of memory that the process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def serve(good: str) -> None:
    import gguf.constants  # noqa: F401  (imported at the first GGUF file)
    import torch

    torch.set_num_threads(1)
    attempt(good)
    attempt(good + "-none")
    gc.collect()
    gc.freeze()  # as the app does once it is warm: a third of an opening is spent in collections
    at_rest = peak()
    for line in sys.stdin:
        answer = attempt(json.loads(line))
        print(json.dumps(answer | {"megabytes": peak() - at_rest}), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
