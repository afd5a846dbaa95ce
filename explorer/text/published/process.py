"""One child process per stranger's tokenizer: its protocol, and a pool of a few.

A line of JSON goes in, a line of JSON comes out. The child limits itself before it reads a
stranger's first byte (`child`); the deadline here holds even if that fails. Only the child's
answer or its end reaches the app. The pool keeps the children that were used last; a tokenizer
whose child was ended gets a new one when it is used again.
"""

import atexit
import json
import signal
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from explorer.system.child_exchange import exchange
from explorer.system.operating_system import IS_POSIX, child_environment
from explorer.text.checked_text import TextError
from explorer.text.published.tokenizer_files import TokenizerFiles, open_files

ROOT = Path(__file__).resolve().parents[3]
LONGEST_ANSWER = 32_000_000
NO_BOUNDS = "this system cannot bound what reads it; the app opens it in WSL, on Linux and on macOS"
PATIENCE, GRACE = 4.0, 6.0
"""Seconds on the clock for each second of computing, and in addition: the machine may be busy."""

_ENVIRONMENT = {
    "PYTHONUTF8": "1",
    "PYTHONNOUSERSITE": "1",
    "MALLOC_ARENA_MAX": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class ChildError(Exception):
    """Why there is no answer, as half a sentence: the child refused, or ended."""


class Child:
    """A tokenizer in its own process. Not for two threads at once: `ChildPool` sees to that."""

    def __init__(self, files: Mapping[str, int], family: str, seconds: float) -> None:
        task = {"files": files, "family": family, "seconds": seconds}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "explorer.text.published.child", json.dumps(task)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd=ROOT,
                env=child_environment() | _ENVIRONMENT,
                pass_fds=tuple(files.values()),
                start_new_session=True,
            )
        except OSError:
            raise ChildError("the machine starts no process for it just now") from None
        try:
            self.facts = self._answer(b"", seconds)
        except ChildError:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
        """The child's answer; ChildError when there is none."""
        return self._answer(json.dumps(request).encode() + b"\n", seconds)

    def close(self) -> None:
        """End the child; it holds nothing that could be lost."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _answer(self, request: bytes, seconds: float) -> Any:
        try:
            answer = json.loads(self._exchange(request, seconds))
        except (ValueError, RecursionError):
            self.close()
            raise ChildError("its answer is damaged") from None
        except BaseException:  # such as a reader who left: half an answer may be on its way
            self.close()
            raise
        if not isinstance(answer, dict) or answer.get("over"):
            self.close()
        if isinstance(answer, dict) and "error" in answer:
            raise ChildError(str(answer["error"]).removesuffix("."))
        return answer

    def _exchange(self, request: bytes, seconds: float) -> bytes:
        """Send the request and read one line before the deadline."""
        deadline = time.monotonic() + seconds * PATIENCE + GRACE

        def wait(received: int) -> float:
            if (left := deadline - time.monotonic()) <= 0:
                raise ChildError("it takes too long")
            if received > LONGEST_ANSWER:
                raise ChildError("its answer is too long")
            return left

        answer = exchange(self._process, request, wait)
        if not answer.endswith(b"\n"):
            raise ChildError(self._cause())
        return answer

    def _cause(self) -> str:
        """Why the child ended, from how it ended."""
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            code = -signal.SIGXCPU
        is_slow = -code in (signal.SIGPROF, signal.SIGXCPU)
        return "it takes too long" if is_slow else "it breaks the library that reads it"


MAX_CHILDREN = 4
LONGEST_WAIT = 20.0


class _Slot:
    """A place in the pool; `busy` while a thread uses its child."""

    def __init__(self) -> None:
        self.child: Child | None = None
        self.busy = True


class ChildPool:
    """A few children, each for one thread at a time; the oldest idle one makes room for another."""

    def __init__(self, most: int = MAX_CHILDREN) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._places: OrderedDict[TokenizerFiles, _Slot] = OrderedDict()

    @contextmanager
    def child(self, source: TokenizerFiles) -> Iterator[Child]:
        """The tokenizer's child, started when it is not there; ChildError when it cannot be."""
        place = self._take(source)
        try:
            if place.child is None or not place.child.alive:
                if place.child is not None:
                    place.child.close()
                place.child = None
                place.child = _start_child(source)
            yield place.child
        finally:
            with self._changed:
                place.busy = False
                if place.child is None or not place.child.alive:
                    self._let_go(source)
                self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            for source, place in list(self._places.items()):
                if not place.busy:
                    self._let_go(source)

    def __len__(self) -> int:
        return len(self._places)

    def _take(self, source: TokenizerFiles) -> _Slot:
        deadline = time.monotonic() + LONGEST_WAIT
        with self._changed:
            while True:
                place = self._places.get(source)
                if place is not None and not place.busy:
                    place.busy = True
                    self._places.move_to_end(source)
                    return place
                if place is None and self._room():
                    place = self._places[source] = _Slot()
                    return place
                if not self._changed.wait(deadline - time.monotonic()):
                    raise TextError("Many tokenizers are in use just now; try again in a moment.")

    def _room(self) -> bool:
        """Whether one more fits, after the idle child that was used longest ago is ended."""
        if len(self._places) < self._most:
            return True
        idle = next((source for source, place in self._places.items() if not place.busy), None)
        if idle is None:
            return False
        self._let_go(idle)
        return True

    def _let_go(self, source: TokenizerFiles) -> None:
        place = self._places.pop(source)
        if place.child is not None:
            place.child.close()


def _start_child(source: TokenizerFiles) -> Child:
    if not IS_POSIX:
        raise ChildError(NO_BOUNDS)
    with open_files(source) as files:
        seconds = 0.9 + source.work / 6_000_000  # it grows with its size, so a small bomb ends soon
        return Child(files, source.family, seconds)


CHILDREN = ChildPool()
atexit.register(CHILDREN.close)
