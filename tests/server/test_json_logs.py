"""What a public server notes: lines of JSON, and nothing that a reader typed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from explorer.server import json_logs
from tests.served import ROOT

TEXT = "what a reader typed"
SCRIPT = f"""
import logging, threading, warnings
from explorer.server import json_logs

json_logs.install()
logging.getLogger("explorer").info("Listening.", extra={{"port": 8501, "text": {TEXT!r}}})
other = logging.getLogger("streamlit.made.later")
other.addHandler(logging.StreamHandler())
other.propagate = False
other.warning("The text %r has %d characters.", {TEXT!r}, 19)
other.warning(f"The text {TEXT} is long.")
try:
    raise ValueError({TEXT!r})
except ValueError:
    other.exception({TEXT!r})
warnings.warn({TEXT!r})
def end():
    raise KeyError({TEXT!r})
thread = threading.Thread(target=end)
thread.start()
thread.join()
raise OSError({TEXT!r})
"""


def test_nothing_that_was_typed_is_noted() -> None:
    command = [sys.executable, "-c", SCRIPT]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert TEXT not in ended.stderr
    assert all(line["at"].endswith("+00:00") for line in lines)
    first, template, written, caught, warned, *uncaught = lines
    assert (first["event"], first["level"], first["port"]) == ("Listening.", "info", 8501)
    assert "text" not in first
    assert template["event"] == "The text %r has %d characters."
    assert written["event"] == "<string>.<module>, line 11", "it may be made of anything"
    assert caught["error"] == "ValueError"
    assert caught["trace"] == ["<string>:13 <module>"]
    assert warned["logger"] == "py.warnings"
    assert [line["error"] for line in uncaught] == ["KeyError", "OSError"]


@pytest.mark.parametrize(
    ("public", "said", "wanted"),
    [("", None, False), ("1", None, True), ("1", "plain", False), ("", "json", True)],
)
def test_a_public_server_has_them_unless_told_otherwise(
    public: str, said: str | None, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_PUBLIC", public)
    monkeypatch.delenv("EXPLORER_LOGS", raising=False)
    if said:
        monkeypatch.setenv("EXPLORER_LOGS", said)
    assert json_logs.are_wanted() is wanted
    assert json_logs.fault() is None


def test_a_wrong_setting_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_LOGS", "xml")
    assert json_logs.fault() == "EXPLORER_LOGS must be json or plain, not 'xml'."
