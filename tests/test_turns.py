"""Turns: few at once, none for ever, and given back whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from explorer import turns
from explorer.turns import AT_ONCE, turn


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
    assert runs_through()


def test_a_turn_is_given_back_after_a_mishap() -> None:
    for _ in range(AT_ONCE + 1):
        with pytest.raises(ZeroDivisionError), turn():
            raise ZeroDivisionError
    assert runs_through()


def test_who_has_waited_long_goes_on_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    with others(AT_ONCE):
        assert not runs_through(), "the turns are taken, so it waits"
        monkeypatch.setattr(turns, "LONGEST_WAIT", 0.05)
        assert runs_through()
    assert runs_through()
