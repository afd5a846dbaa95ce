"""Bars of a query and a key, and a pair by its distance: plain data that Vega-Lite accepts."""

from __future__ import annotations

import json
import math

import altair
import pytest

from explorer.figures.products import by_distance, dimensions

VALUES = [0.5, -2.0, 0.0, 1.25]
CHARTS = {
    "bars": dimensions(VALUES, [0, 1, 2, 3], "query"),
    "bars by size": dimensions(VALUES, [1, 3, 0, 2], "product", last=True),
    "bars without numbers": dimensions([math.nan, math.inf, 1.0], [0, 1, 2], "key"),
    "one bar": dimensions([1.0], [0], "key", last=True),
    "many bars": dimensions([1.0, -1.0] * 128, list(range(256)), "key", last=True),
    "by distance": by_distance([(-1, 0.5), (0, 1.0), (3, -2.0)], 3, "score"),
    "by distance without numbers": by_distance([(0, math.nan)], 0, "score"),
    "one distance": by_distance([(0, 1.0)], 0, "bias"),
}


def test_the_schema_accepts_it(subtests: pytest.Subtests) -> None:
    for chart in CHARTS.values():
        with subtests.test(chart=chart):
            altair.Chart.from_dict(json.loads(json.dumps(chart, allow_nan=False)), validate=True)


def test_bars_keep_their_order_and_tell_the_running_sum() -> None:
    rows = CHARTS["bars by size"]["datasets"]["rows"]
    assert [row["dimension"] for row in rows] == [1, 3, 0, 2]
    assert [row["sum"] for row in rows] == [-2.0, -0.75, -0.25, -0.25]
    assert [row["side"] for row in rows][:2] == ["below zero", "above zero"]


def test_what_is_no_number_has_no_bar() -> None:
    rows = CHARTS["bars without numbers"]["datasets"]["rows"]
    assert [row["value"] for row in rows] == [None, None, 1.0]


def test_the_pair_is_marked_at_its_own_distance() -> None:
    marks = [layer.get("data", {}).get("values") for layer in CHARTS["by distance"]["layer"]]
    assert marks[1] == marks[2] == [{"distance": 3, "value": -2.0}]
