"""What a public server notes: lines of JSON, and nothing that a reader typed."""

import json
import logging
import subprocess
import sys

import pytest

from explorer.server import json_logs
from explorer.server.json_logs import MOST, WINDOW, LineLimit
from tests.served import ROOT

TEXT = "what a reader typed"
MISHAPS = f"""
try:
    raise ValueError({TEXT!r})
except ValueError:
    other.exception({TEXT!r})
def end():
    raise KeyError({TEXT!r})
thread = threading.Thread(target=end)
thread.start()
thread.join()
raise OSError({TEXT!r})
"""
"""One that is caught, one of a thread, and the last."""
SCRIPT = f"""
import logging, threading, warnings
from explorer.server import json_logs

json_logs.install()
logging.getLogger("explorer").info("Listening.", extra={{"port": 8501, "text": {TEXT!r}}})
for logger in map(logging.getLogger, ["explorer", "streamlit.made.later"]):
    for _ in range({2 * MOST}):
        logger.warning("Again.")
other = logging.getLogger("streamlit.made.later")
other.addHandler(logging.StreamHandler())
other.propagate = False
other.warning("The text %r has %d characters.", {TEXT!r}, 19)
other.warning(f"The text {TEXT} is long.")
warnings.warn({TEXT!r})
{MISHAPS}"""


def noted_by(script: str) -> list[str]:
    """The lines that a process with this script writes."""
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return ended.stderr.splitlines()


def test_nothing_that_was_typed_is_noted() -> None:
    said = noted_by(SCRIPT)
    assert not [line for line in said if TEXT in line]
    lines = [json.loads(line) for line in said]
    assert all(line["at"].endswith("+00:00") for line in lines)
    again = [line for line in lines if line["event"] == "Again."]
    assert len(again) == MOST, "one line of code notes it, whoever it notes it for"
    first, template, written, warned, caught, *uncaught = (
        line for line in lines if line not in again
    )
    assert (first["event"], first["level"], first["port"]) == ("Listening.", "info", 8501)
    assert "text" not in first
    assert template["event"] == "The text %r has %d characters."
    assert written["event"] == "<string>.<module>, line 14", "it may be made of anything"
    assert caught["error"] == "ValueError"
    assert caught["trace"] == ["<string>:18 <module>"]
    assert warned["logger"] == "py.warnings"
    assert [line["error"] for line in uncaught] == ["KeyError", "OSError"]


def test_what_one_place_says_again_and_again_is_noted_some_times_a_minute() -> None:
    """A line for each message of a stranger's was two megabytes in half a minute."""
    limit = LineLimit()

    def note(at: float, line: int = 1) -> logging.LogRecord | None:
        record = logging.LogRecord("x", logging.INFO, "here.py", line, "Again.", None, None)
        record.created = at
        return record if limit.allows(record) else None

    first = [note(100 + each / 100) for each in range(500)]
    assert [each is not None for each in first] == [True] * MOST + [False] * (500 - MOST)
    assert note(100, line=2) is not None, "another place"
    assert note(100 + WINDOW - 1) is None
    after = note(100 + WINDOW)
    assert after is not None
    assert json.loads(json_logs.line_of(after))["left_out"] == 501 - MOST
    another = note(101 + WINDOW)
    assert another is not None
    assert "left_out" not in json.loads(json_logs.line_of(another))


def test_a_public_server_has_them_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    for public, said, wanted in (
        *(("", None, False), ("1", None, True)),
        *(("1", "plain", False), ("", "json", True)),
    ):
        monkeypatch.setenv("EXPLORER_PUBLIC", public)
        monkeypatch.delenv("EXPLORER_LOGS", raising=False)
        if said:
            monkeypatch.setenv("EXPLORER_LOGS", said)
        assert (json_logs.are_wanted(), json_logs.fault()) == (wanted, None), (public, said)
    monkeypatch.setenv("EXPLORER_LOGS", "xml")
    assert json_logs.fault() == "EXPLORER_LOGS must be json or plain, not 'xml'."
