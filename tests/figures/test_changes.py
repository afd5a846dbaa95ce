"""Charts of a change: plain data that Vega-Lite accepts, also where a pass gave no numbers."""

from __future__ import annotations

import json
import math
from typing import Any

import altair
import pytest

from explorer.figures.changes import Point, by_edges, paired

NAN, INF = math.nan, math.inf
CHARTS = {
    "pairs": paired(["cat", "dog"], [0.75, 0.25], [0.5, 0.5]),
    "pairs without numbers": paired(["cat", "dog"], [0.75, 0.25], [NAN, INF]),
    "edges": by_edges([Point(1, 0.5, 0.1, 0.0, 0.2), Point(2, 1.5, 0.2, 0.1, 0.3)]),
    "edges without numbers": by_edges([Point(1, 0.5, NAN, NAN, INF), Point(2, NAN, 0, 0, 0)]),
    "no number at all": by_edges([Point(1, NAN, NAN, NAN, NAN)]),
}


def test_the_schema_accepts_it(subtests: pytest.Subtests) -> None:
    for chart in CHARTS.values():
        with subtests.test(chart=chart):
            altair.Chart.from_dict(json.loads(json.dumps(chart, allow_nan=False)), validate=True)


def test_what_is_no_number_has_no_bar_and_is_said() -> None:
    chart = CHARTS["pairs without numbers"]
    rows = chart["layer"][0]["data"]["values"]
    assert [row["value"] for row in rows] == [0.75, 0.25, None, None]
    assert [row["said"] for row in rows] == ["0.7500", "0.2500", "no value", "no value"]
    assert chart["params"][0]["value"][0].endswith("0.750 → no value")


def test_the_scale_ends_at_the_largest_number() -> None:
    def top(chart: dict[str, Any]) -> float:
        return float(chart["layer"][1]["encoding"]["y"]["scale"]["domain"][1])

    assert top(CHARTS["edges"]) == 1.5
    assert top(CHARTS["edges without numbers"]) == 0.5
    assert top(CHARTS["no number at all"]) == 1
