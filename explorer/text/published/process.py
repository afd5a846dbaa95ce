"""One child process that holds a stranger's tokenizer, and how it is spoken with.

A line of JSON goes in, a line of JSON comes out. The child limits itself before it
reads the first byte of a stranger (`child`); here is the deadline that stands when
even that should fail. Nothing it does can reach the app but its answer or its end.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
LONGEST_ANSWER = 32_000_000
PATIENCE, GRACE = 4.0, 6.0
"""Seconds on the clock for each second of computing, and on top: the machine may be busy."""

_ENVIRONMENT = {
    "PYTHONUTF8": "1",
    "PYTHONNOUSERSITE": "1",
    "MALLOC_ARENA_MAX": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
_PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


class Fault(Exception):
    """Why there is no answer, half a sentence: the child refused, or ended."""


class Child:
    """A tokenizer in its own process. Not for two threads at once: `keep` sees to that."""

    def __init__(self, files: Mapping[str, int], family: str, seconds: float) -> None:
        task = {"files": files, "family": family, "seconds": seconds}
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "explorer.text.published.child", json.dumps(task)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd=ROOT,
                env=environment | _ENVIRONMENT,
                pass_fds=tuple(files.values()),
                start_new_session=True,
            )
        except OSError:
            raise Fault("the machine starts no process for it just now") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        try:
            self.facts = self._answer(b"", seconds)
        except Fault:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
        """The child's answer; Fault when there is none."""
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
            answer = json.loads(self._exchange(request, time.monotonic() + _clock(seconds)))
        except (Fault, ValueError, RecursionError) as error:
            self.close()
            raise Fault(
                str(error) if isinstance(error, Fault) else "its answer is damaged"
            ) from None
        except BaseException:  # such as a reader who left: half an answer may be on its way
            self.close()
            raise
        if not isinstance(answer, dict) or answer.get("over"):
            self.close()
        if isinstance(answer, dict) and "error" in answer:
            raise Fault(str(answer["error"]).removesuffix("."))
        return answer

    def _exchange(self, request: bytes, deadline: float) -> bytes:
        """Send the request and read one line, neither waiting longer than agreed."""
        left, received = memoryview(request), bytearray()
        with selectors.DefaultSelector() as ready:
            ready.register(self._out, selectors.EVENT_READ)
            if left:
                ready.register(self._in, selectors.EVENT_WRITE)
            while not received.endswith(b"\n"):
                seconds = deadline - time.monotonic()
                if seconds <= 0:
                    raise Fault("it takes too long")
                for key, _ in ready.select(seconds):
                    if key.fd == self._in:
                        left = left[self._send(left) :]
                        if not left:
                            ready.unregister(self._in)
                    else:
                        self._receive(received)
        return bytes(received)

    def _send(self, left: memoryview) -> int:
        try:
            return os.write(self._in, left)
        except BlockingIOError:
            return 0
        except OSError:
            raise Fault(self._cause()) from None

    def _receive(self, received: bytearray) -> None:
        try:
            part = os.read(self._out, 1 << 18)
        except BlockingIOError:
            return
        if not part:
            raise Fault(self._cause())
        received += part
        if len(received) > LONGEST_ANSWER:
            raise Fault("it makes too much of it")

    def _cause(self) -> str:
        """Why the child ended, from how it ended."""
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return "it takes too long"
        if -code in (signal.SIGPROF, signal.SIGXCPU):
            return "it takes too long"
        return "it breaks the library that reads it"


def _clock(seconds: float) -> float:
    return seconds * PATIENCE + GRACE
