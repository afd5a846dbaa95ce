"""The curves of a training."""

from __future__ import annotations

from explorer.figures.progress import MOST_POINTS, held_out_curve, loss_curve, thinned


def test_a_long_curve_is_thinned_and_ends_where_it_ends() -> None:
    points = [(step, float(step)) for step in range(1, 10_001)]
    few = thinned(points)
    assert len(few) <= MOST_POINTS
    assert few[-1][0] == 10_000
    assert few[0][1] == sum(range(1, few[0][0] + 1)) / few[0][0]
    assert thinned([]) == []
    assert thinned([(1, 2.0)]) == [(1, 2.0)]


def test_the_axis_ends_where_the_run_will() -> None:
    chart = loss_curve([(1, 3.0)], steps=400)
    assert chart["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, 400]
    assert chart["data"]["values"] == [{"step": 1, "value": 3.0}]


def test_a_share_has_a_fixed_axis_and_a_goal_is_a_line() -> None:
    share = held_out_curve([(1, 0.5)], 10, "exact match", goal=0.99, is_share=True)
    assert share["layer"][0]["encoding"]["y"]["scale"]["domain"][0] == 0
    assert share["layer"][1]["data"]["values"] == [{"goal": 0.99}]
    nats = held_out_curve([(1, 4.5)], 10, "nats per token", goal=None, is_share=False)
    assert "domain" not in nats["layer"][0]["encoding"]["y"]["scale"]
    assert len(nats["layer"]) == 1
