"""A request to a child process and its answer: a line of JSON in, a line of JSON out."""

import os
import selectors
import subprocess
from collections.abc import Callable


def exchange(child: subprocess.Popen[bytes], request: bytes, wait: Callable[[int], float]) -> bytes:
    """Send the request and read one line, or the part of it that came before the child ended.

    `wait` is called repeatedly with the number of bytes received, and returns how many seconds to
    wait for more; it may raise.
    """
    assert child.stdin is not None
    assert child.stdout is not None
    into, out = child.stdin.fileno(), child.stdout.fileno()
    os.set_blocking(into, False)
    os.set_blocking(out, False)
    left, answer = memoryview(request), bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(out, selectors.EVENT_READ)
        if left:
            ready.register(into, selectors.EVENT_WRITE)
        while not answer.endswith(b"\n"):
            for key, _ in ready.select(wait(len(answer))):
                if key.fd == into:
                    left = left[_write(into, left) :]
                    if not left:
                        ready.unregister(into)
                elif (part := _read(out)) is not None:
                    if not part:
                        return bytes(answer)
                    answer += part
    return bytes(answer)


def _write(into: int, left: memoryview) -> int:
    """The number of bytes written; all of them if the child has ended."""
    try:
        return os.write(into, left)
    except BlockingIOError:
        return 0
    except OSError:
        return len(left)


def _read(out: int) -> bytes | None:
    """The next bytes; empty if the child has ended, None if there are none yet."""
    try:
        return os.read(out, 1 << 18)
    except BlockingIOError:
        return None
