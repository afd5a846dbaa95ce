"""Turns: few at once, none for ever, and given back; a bar is shown where work takes long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from explorer import turns, waiting
from explorer.turns import AT_ONCE, turn
from explorer.waiting import with_bar


def runs_through() -> bool:
    """Whether a run in another thread gets its turn at once."""
    done = threading.Event()

    def run() -> None:
        with turn():
            done.set()

    thread = threading.Thread(target=run)
    thread.start()
    came = done.wait(0.2)
    thread.join()
    return came


@contextmanager
def others(count: int) -> Iterator[None]:
    """So many runs of other threads that are in their turns."""
    at_work, go_on = threading.Barrier(count + 1), threading.Event()

    def run() -> None:
        with turn():
            at_work.wait()
            go_on.wait()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    at_work.wait()
    try:
        yield
    finally:
        go_on.set()
        for thread in threads:
            thread.join()


def test_within_a_turn_no_other_is_taken() -> None:
    """A fragment within the run of its page has that run's turn; drawn alone, one of its own."""
    draw = turn()(runs_through)
    with others(AT_ONCE - 2), turn():
        assert draw(), "the page and its fragment are one turn"
    with others(AT_ONCE - 1):
        assert not draw(), "drawn alone, it has the last turn"
    for _ in range(AT_ONCE + 1):
        with pytest.raises(ZeroDivisionError), turn():
            raise ZeroDivisionError
    assert runs_through(), "it is given back after a mishap"


def test_who_has_waited_long_goes_on_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    with others(AT_ONCE):
        assert not runs_through(), "the turns are taken, so it waits"
        monkeypatch.setattr(turns, "LONGEST_WAIT", 0.05)
        assert runs_through()
    assert runs_through()


class Place:
    """Stands in for a place on the screen."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def progress(self, share: float, text: str) -> None:
        self.said.append(text)

    def empty(self) -> None:
        self.said.append("")


def test_long_work_says_how_far_it_is_and_short_work_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for seconds, said in [
        (1.0, ["Reading: 10%, about 9 s left", "Reading: 40%, about 3 s left", ""]),
        (0.001, [""]),
    ]:
        place, looks = Place(), iter(range(100))
        monkeypatch.setattr(waiting.st, "empty", lambda place=place: place)
        clock = lambda seconds=seconds, looks=looks: seconds * next(looks)  # noqa: E731
        monkeypatch.setattr(waiting.time, "monotonic", clock)
        assert with_bar([1, 3, 6], 10, "Reading", lambda step: step) == [1, 3, 6]
        assert place.said == said
