"""The curves of a training."""

from __future__ import annotations

from explorer.figures.learning import MOST_POINTS, held_out, loss, thinned


def test_a_long_curve_is_thinned_and_ends_where_it_ends() -> None:
    points = [(step, float(step)) for step in range(1, 10_001)]
    few = thinned(points)
    assert len(few) <= MOST_POINTS
    assert few[-1][0] == 10_000
    assert few[0][1] == sum(range(1, few[0][0] + 1)) / few[0][0]
    assert thinned([]) == []
    assert thinned([(1, 2.0)]) == [(1, 2.0)]


def test_the_axis_ends_where_the_run_will() -> None:
    assert loss(400)["encoding"]["x"]["scale"]["domain"] == [0, 400]


def test_the_held_out_figure_has_a_fixed_axis_and_a_goal_is_a_line() -> None:
    share = held_out("exact match", 10, goal=0.99)
    assert share["layer"][0]["encoding"]["y"]["scale"]["domain"] == [0.0, 1.0]
    assert share["layer"][-1]["data"]["values"] == [{"goal": 0.99}]
    nats = held_out("nats per token", 10, domain=(0.0, 4.5))
    assert nats["layer"][0]["encoding"]["y"]["scale"]["domain"] == [0.0, 4.5]
    assert len(nats["layer"]) == 2
