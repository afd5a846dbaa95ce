"""What the processes that train note of themselves: the kind of an event and its place in the code.

Loaded by each of them at its start. The name of a run holds the key of its link, and an error may
quote the text that it learns from; Dask would note both, with each task that fails.
"""

import logging
import sys
import threading
from types import TracebackType
from typing import Any


def dask_setup(_process: Any) -> None:
    """Called by Dask. From now on no handler writes a message, and no error its words."""
    logging.Handler.format = _format  # type: ignore[method-assign, assignment]
    sys.excepthook = _uncaught
    threading.excepthook = lambda told: _uncaught(told.exc_type, None, told.exc_traceback)


def _format(_handler: logging.Handler, record: logging.LogRecord) -> str:
    return line_of(record)


def line_of(record: logging.LogRecord) -> str:
    """The record as one line, without what was put into it."""
    kind = record.exc_info[0] if record.exc_info else None
    place = f"{record.name}: {record.module}.{record.funcName}, line {record.lineno}"
    return f"{record.levelname} {place}{f', {kind.__name__}' if kind else ''}"


def _uncaught(
    kind: type[BaseException], _error: BaseException | None, trace: TracebackType | None
) -> None:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = f"{trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}" if trace else "nowhere"
    sys.stderr.write(f"ERROR {kind.__name__} in {at}\n")
