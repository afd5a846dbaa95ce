"""How often a thing beside the training is worth its time."""

from __future__ import annotations

import pytest

from explorer.runs import pace
from explorer.runs.pace import Pace, Speed, is_snapshot_step


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    return clock


def do(thing: Pace, clock: Clock, cost: float) -> None:
    with thing.timed():
        clock.now += cost


def test_cheap_things_keep_their_interval(clock: Clock) -> None:
    thing = Pace(every=1.0, share=0.1)
    assert thing.is_due()
    do(thing, clock, cost=0.01)
    clock.now += 0.9
    assert not thing.is_due()
    clock.now += 0.11
    assert thing.is_due()


def test_dear_things_keep_their_share(clock: Clock) -> None:
    thing = Pace(every=0.0, share=0.1)
    do(thing, clock, cost=1.0)
    clock.now += 8.9
    assert not thing.is_due()
    clock.now += 0.2
    assert thing.is_due()


def test_speed_counts_from_where_it_began(clock: Clock) -> None:
    speed = Speed(step=500)
    clock.now += 2
    assert speed.update(520) == pytest.approx(10)
    clock.now += 1
    assert speed.update(540) == pytest.approx(15)
    clock.now += 5
    assert speed.update(540) == pytest.approx(15)


def test_early_steps_are_kept_closer() -> None:
    kept = [step for step in range(2001) if is_snapshot_step(step)]
    assert kept == [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]
