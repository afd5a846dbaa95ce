"""Turns: few at once, none for ever, and given back whatever happens."""

from __future__ import annotations

import threading

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


def test_a_turn_is_given_back_after_a_mishap() -> None:
    for _ in range(AT_ONCE + 1):
        with pytest.raises(ZeroDivisionError), turn():
            raise ZeroDivisionError
    assert runs_through()


def test_who_has_waited_long_goes_on_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    with turn(), turn():
        assert AT_ONCE == 2
        assert not runs_through(), "the turns are taken, so it waits"
        monkeypatch.setattr(turns, "LONGEST_WAIT", 0.05)
        assert runs_through()
    assert runs_through()
