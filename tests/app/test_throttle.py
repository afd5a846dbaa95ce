"""Turns: few at once, none for ever, and given back; a bar is shown where work takes long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from explorer.app import progress, throttle
from explorer.app.progress import with_bar
from explorer.app.throttle import AT_ONCE, LONGEST_WAIT, turn


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For every turn that is asked for, whether none came in time; nobody really waits."""
    real, found = threading.BoundedSemaphore(AT_ONCE), list[bool]()

    def acquire(timeout: float) -> bool:
        assert timeout == LONGEST_WAIT
        has_one = real.acquire(blocking=False)
        found.append(not has_one)
        return has_one

    monkeypatch.setattr(throttle, "_turns", SimpleNamespace(acquire=acquire, release=real.release))
    return found


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


def test_within_a_turn_no_other_is_taken(waited: list[bool]) -> None:
    """A fragment within the run of its page has that run's turn; drawn alone, one of its own."""
    draw = turn()(lambda: None)
    with turn():
        draw()
    assert waited == [False], "the page and its fragment are one turn"
    draw()
    assert waited == [False, False]


def test_a_turn_is_given_back_after_a_mishap(waited: list[bool]) -> None:
    for _ in range(AT_ONCE + 1):
        with pytest.raises(ZeroDivisionError), turn():
            raise ZeroDivisionError
    assert not any(waited)


def test_who_has_waited_long_goes_on_and_gives_nothing_back(waited: list[bool]) -> None:
    for _ in range(2):
        with others(AT_ONCE):
            for _ in range(2):
                with turn():
                    pass
    assert waited == [*[False] * AT_ONCE, True, True] * 2


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(1.0, ["Reading: 10%, about 9 s left", "Reading: 40%, about 3 s left"]), (0.001, [])],
)
def test_long_work_says_how_far_it_is_and_short_work_nothing(
    seconds: float, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, looks = Mock(), iter(range(100))
    monkeypatch.setattr(progress.st, "empty", lambda: place)
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds * next(looks))
    assert with_bar([1, 3, 6], 10, "Reading", lambda step: step) == [1, 3, 6]
    assert [call.args[1] for call in place.progress.call_args_list] == said
    place.empty.assert_called_once_with()
