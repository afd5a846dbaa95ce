"""How often a thing beside the training is worth its time."""

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


def test_cheap_things_keep_their_interval_and_dear_ones_their_share(clock: Clock) -> None:
    for every, cost, before, after in ((1.0, 0.01, 0.9, 0.11), (0.0, 1.0, 8.9, 0.2)):
        thing = Pace(every=every, share=0.1)
        assert thing.is_due()
        with thing.timed():
            clock.now += cost
        clock.now += before
        assert not thing.is_due(), cost
        clock.now += after
        assert thing.is_due(), cost


def test_speed_counts_from_where_it_began(clock: Clock) -> None:
    speed = Speed(step=500)
    for seconds, step, found in ((2, 520, 10), (1, 540, 15), (5, 540, 15)):
        clock.now += seconds
        assert speed.update(step) == pytest.approx(found)


def test_early_steps_are_kept_closer() -> None:
    kept = [step for step in range(201) if is_snapshot_step(step)]
    assert kept == [0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200]
    assert [step for step in range(200, 2001, 10) if is_snapshot_step(step)] == [
        step * 10 for step in kept if step >= 20
    ]
