"""Texts of one's own, line by line, that are too long."""

from collections.abc import Callable

import pytest

from explorer.text import TextError
from explorer.text.reader_lines import lines_in


def _refused(text: str) -> str:
    with pytest.raises(TextError) as refused:
        lines_in(text)
    return str(refused.value)


def too_many(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_LINES", "3")
    assert len(lines_in("a\nb\nc")) == 3
    return _refused("a\nb\nc\nd")


def too_long(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_LINE_CHARACTERS", "9")
    assert lines_in("123456789")
    return _refused("short\n1234567890")


MEETINGS: dict[str, Callable[..., str]] = {"lines": too_many, "line_characters": too_long}
