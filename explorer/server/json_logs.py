"""What the server notes, a line of JSON each, without what readers typed.

So it is with EXPLORER_LOGS=json, and on a public server; EXPLORER_LOGS=plain has Streamlit's lines.
A message may quote a text, and so may what an error says. Of errors their kind and their lines of
code are noted; of other libraries' messages the words that stand in their code, and where they
have put values into them already, only the place. Numbers are noted.

Each line of code notes so much a minute: what a stranger's message causes, one who sends twenty a
second would fill the disk with.
"""

import json
import logging
import os
import sys
import threading
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from explorer.system import limits

SETTING = "EXPLORER_LOGS"
KINDS = ("json", "plain")
OURS = "explorer"
MOST_FRAMES = 30
MOST, WINDOW = 20, 60
"""Lines that one place in the code may note, and the seconds from the first of them."""
_USUAL = vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}

log = logging.getLogger(OURS)


def fault() -> str | None:
    """One sentence saying what is wrong with the setting, for whoever starts the server."""
    said = os.environ.get(SETTING, KINDS[0])
    return None if said in KINDS else f"{SETTING} must be json or plain, not {said[:60]!r}."


def are_wanted() -> bool:
    return os.environ.get(SETTING, "json" if limits.is_public() else "plain") == "json"


def install() -> None:
    """From now on whatever is noted in this process is noted so.

    Streamlit and uvicorn make handlers of their own when they first need them; so what is set is
    how any handler writes.
    """
    logging.Handler.format = _format  # type: ignore[method-assign, assignment]
    handle, repeats = logging.Logger.handle, Repeats()

    def handle_few(logger: logging.Logger, record: logging.LogRecord) -> None:
        if repeats.allow(record):
            handle(logger, record)

    logging.Logger.handle = handle_few  # type: ignore[method-assign, assignment]
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda told: _uncaught(
        told.exc_type, told.exc_value or told.exc_type(), told.exc_traceback
    )
    logging.getLogger().addHandler(logging.StreamHandler())
    log.setLevel(logging.INFO)


class Repeats:
    """What each place in the code has noted lately; what is left out is counted in its next."""

    def __init__(self) -> None:
        self._lately: dict[tuple[str, int], tuple[float, int]] = {}
        """When the first was noted, and how many came since then."""

    def allow(self, record: logging.LogRecord) -> bool:
        """Whether this one is noted."""
        place = (record.pathname, record.lineno)
        began, count = self._lately.get(place, (record.created, 0))
        if record.created - began >= WINDOW:
            if count > MOST:
                record.left_out = count - MOST
            began, count = record.created, 0
        self._lately[place] = began, count + 1
        return count < MOST


def _format(_handler: logging.Handler, record: logging.LogRecord) -> str:
    return line_of(record)


def line_of(record: logging.LogRecord) -> str:
    """The record as one line."""
    noted: dict[str, Any] = {
        "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "event": event_of(record),
    }
    noted |= {
        name: value
        for name, value in vars(record).items()
        if name not in _USUAL and isinstance(value, int | float)
    }
    if record.exc_info and record.exc_info[0]:
        kind, _, trace = record.exc_info
        noted |= {"error": kind.__name__, "trace": frames_of(trace)}
    return json.dumps(noted)


def event_of(record: logging.LogRecord) -> str:
    """What happened, in words that stand in the code, or the place in the code."""
    words = str(record.msg)
    if record.name.partition(".")[0] == OURS or (record.args and isinstance(record.msg, str)):
        return words
    return f"{record.module}.{record.funcName}, line {record.lineno}"


def frames_of(trace: TracebackType | None) -> list[str]:
    """Where it happened, the innermost last: files by their names, no values and no messages."""
    frames = traceback.extract_tb(trace)[-MOST_FRAMES:]
    return [f"{os.path.basename(at.filename)}:{at.lineno} {at.name}" for at in frames]


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    log.error("An error that nobody caught.", exc_info=(kind, error, trace))
