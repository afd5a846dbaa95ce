"""How long the server has run: what expires ages by this, not by a clock that may be wrong.

Each folder of what expires has a file of the spans of clock time in which a server looked after it.
A clock that jumps begins another span, so a jump of a year ages nothing.
"""

import json
import math
import os
import time
from contextlib import suppress
from pathlib import Path

from explorer.system.atomic_files import write_text

TIME_FILE = ".ran.json"
LONGEST_GAP = 600.0
"""Seconds between two looks within one span."""
MOST_SPANS = 1_000


class RunningTime:
    """The spans of one folder, up to now."""

    def __init__(self, root: Path) -> None:
        now, file = time.time(), root / TIME_FILE
        self.spans = _read(file)
        end = self.spans[-1][1] if self.spans else -math.inf
        if now < end:  # it was set back
            self.spans = [[begin, min(end, now)] for begin, end in self.spans if begin < now]
        if self.spans and now - self.spans[-1][1] <= LONGEST_GAP:
            self.spans[-1][1] = now
        else:
            self.spans.append([now, now])
        if not 0 <= now - end <= LONGEST_GAP / 10:  # else a later look writes it
            with suppress(OSError):
                write_text(file, json.dumps(self.spans[-MOST_SPANS:]))

    def since(self, moment: float) -> float:
        """Seconds for which a server has run since this moment of the clock."""
        return sum(max(0.0, end - max(begin, moment)) for begin, end in self.spans)

    def age(self, path: Path) -> float:
        """The same since the file or folder was last written; OSError if it is gone."""
        written = path.stat().st_mtime
        if written > time.time() + LONGEST_GAP:  # by a clock that was ahead: it begins anew
            os.utime(path)
            return 0.0
        return self.since(written)


def _read(file: Path) -> list[list[float]]:
    try:
        return [[float(begin), float(end)] for begin, end in json.loads(file.read_text("utf-8"))]
    except (OSError, ValueError, TypeError, RecursionError):
        return []
