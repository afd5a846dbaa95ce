"""The server's log as lines of JSON, without anything that readers typed.

A public server has it unless EXPLORER_LOGS=plain keeps Streamlit's lines, another with
EXPLORER_LOGS=json. Messages and errors may quote a text. So an error is logged as its type and its
lines of code, and a message of another library as its template, or only by its place if it has
none. Numbers are logged.

Each line of code logs only so often a minute, or a stranger's messages could fill the disk.
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
"""Lines that one place in the code may log, in so many seconds from the first of them."""
_USUAL = vars(logging.makeLogRecord({})).keys() | {"message", "asctime"}

log = logging.getLogger(OURS)


def fault() -> str | None:
    """One sentence on what is wrong with the setting, for whoever starts the server."""
    value = os.environ.get(SETTING, KINDS[0])
    return None if value in KINDS else f"{SETTING} must be json or plain, not {value[:60]!r}."


def are_wanted() -> bool:
    return os.environ.get(SETTING, "json" if limits.is_public() else "plain") == "json"


def install() -> None:
    """From now on every log line of this process is JSON.

    Streamlit and uvicorn make their handlers when they first need them, so this changes the class.
    """
    logging.Handler.format = lambda _, record: line_of(record)  # type: ignore[method-assign, assignment]
    handle, limit = logging.Logger.handle, LineLimit()

    def handle_few(logger: logging.Logger, record: logging.LogRecord) -> None:
        if limit.allows(record):
            handle(logger, record)

    logging.Logger.handle = handle_few  # type: ignore[method-assign, assignment]
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda args: _uncaught(
        args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback
    )
    logging.getLogger().addHandler(logging.StreamHandler())
    log.setLevel(logging.INFO)


class LineLimit:
    """Bounds the lines of each place in the code; its next line counts those that were left out."""

    def __init__(self) -> None:
        self._recent: dict[tuple[str, int], tuple[float, int]] = {}
        """By place, the time of its first line, and how many have come since then."""

    def allows(self, record: logging.LogRecord) -> bool:
        place = (record.pathname, record.lineno)
        start, count = self._recent.get(place, (record.created, 0))
        if record.created - start >= WINDOW:
            if count > MOST:
                record.left_out = count - MOST
            start, count = record.created, 0
        self._recent[place] = start, count + 1
        return count < MOST


def line_of(record: logging.LogRecord) -> str:
    fields: dict[str, Any] = {
        "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "event": event_of(record),
    }
    fields |= {
        name: value
        for name, value in vars(record).items()
        if name not in _USUAL and isinstance(value, int | float)
    }
    if record.exc_info and record.exc_info[0]:
        kind, _, trace = record.exc_info
        frames = traceback.extract_tb(trace)[-MOST_FRAMES:]  # the innermost last
        places = [f"{os.path.basename(at.filename)}:{at.lineno} {at.name}" for at in frames]
        fields |= {"error": kind.__name__, "trace": places}
    return json.dumps(fields)


def event_of(record: logging.LogRecord) -> str:
    """What happened, in words of the code and without values, or the place in the code."""
    words = str(record.msg)
    if record.name.partition(".")[0] == OURS or (record.args and isinstance(record.msg, str)):
        return words
    return f"{record.module}.{record.funcName}, line {record.lineno}"


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    log.error("Uncaught error.", exc_info=(kind, error, trace))
