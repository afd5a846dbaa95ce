"""A bar is shown where work takes long, never where it is done at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from explorer import waiting
from explorer.waiting import with_bar


class Place:
    """Stands in for a place on the screen."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def progress(self, share: float, text: str) -> None:
        assert 0 < share < 1
        self.said.append(text)

    def empty(self) -> None:
        self.said.append("")


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place()
    monkeypatch.setattr(waiting.st, "empty", lambda: place)
    return place


def clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Every look at the clock finds it that much later."""
    ticks: Iterator[float] = (seconds * at for at in range(10_000))
    monkeypatch.setattr(waiting.time, "monotonic", lambda: next(ticks))


def test_long_work_says_how_far_it_is_and_how_long_it_takes(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch, 1.0)
    assert with_bar([1, 2, 3, 4], 10, "Reading", lambda step: step) == [1, 2, 3, 4]
    assert place.said[0] == "Reading: 10%, about 9 s left"
    assert place.said[2] == "Reading: 60%, about 2 s left"
    assert place.said[-1] == ""
    assert len(place.said) == 4


def test_short_work_shows_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    clock(monkeypatch, 0.001)
    assert with_bar(range(20), 20, "Reading") == list(range(20))
    assert place.said == [""]
    assert with_bar([], 0, "Reading") == []
