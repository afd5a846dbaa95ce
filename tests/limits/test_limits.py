"""The table of limits: its settings, its page, and each limit met and its sentence read."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from docs import limits as page
from explorer.system import limits
from explorer.system.limits import TABLE
from tests.limits.meetings import MEETINGS
from tests.server.uploading import bound


@pytest.mark.parametrize("name", sorted(MEETINGS))
def test_who_meets_it_reads_its_sentence(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = MEETINGS[name]
    given: dict[str, Any] = {
        each.name: request.getfixturevalue(each.name)
        for each in inspect.signature(meeting.meet).parameters.values()
        if each.default is each.empty
    }
    if meeting.most is not None:
        bound(monkeypatch, **{name: meeting.most})
    sentence = next(limit.sentence for limit in TABLE if limit.name == name)
    pattern = re.sub(r"\\{(limit|amount)\\}", ".+", re.escape(sentence))
    said = meeting.meet(**given)
    assert re.search(pattern, said), said


def test_a_public_server_has_the_second_column(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(MEETINGS) == {limit.name for limit in TABLE if limit.sentence}, "each is met"
    monkeypatch.setenv("EXPLORER_PUBLIC", "1")
    assert {limit.name: limit.most for limit in TABLE} == {each.name: each.public for each in TABLE}


def test_the_environment_wins_over_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text("run_steps = 2_000\nqueue = 7\n")
    monkeypatch.setenv("EXPLORER_LIMITS", str(file))
    monkeypatch.setenv("EXPLORER_LIMIT_QUEUE", "8")
    assert (limits.RUN_STEPS.most, limits.QUEUE.most) == (2_000, 8)
    assert limits.fault() is None


def test_a_wrong_setting_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value, said in (
        ("EXPLORER_LIMIT_QUEUE", "many", "must be a whole number"),
        ("EXPLORER_LIMIT_QUEUE", "-1", "must be a whole number"),
        ("EXPLORER_LIMIT_QUEU", "1", "is not a limit"),
        ("EXPLORER_PUBLIC", "true", "must be 1"),
        ("EXPLORER_LIMITS", "queue = 1.5", "must be a whole number"),
        ("EXPLORER_LIMITS", "queue = true", "must be a whole number"),
        ("EXPLORER_LIMITS", "queu = 1", "is not a limit"),
        ("EXPLORER_LIMITS", "queue", "cannot be read as TOML"),
    ):
        (file := tmp_path / value).write_text(value)
        with monkeypatch.context() as patch:
            patch.setenv(name, str(file) if name == "EXPLORER_LIMITS" else value)
            assert said in str(limits.fault()), (name, value)


def test_the_page_is_that_of_the_table() -> None:
    assert page.PAGE.read_text("utf-8") == page.text()
