"""Every chart is plain data that Vega-Lite's own schema accepts, and stands still."""

from __future__ import annotations

import json
import math
from typing import Any

import altair
import pytest

from explorer.figures.bars import bars
from explorer.figures.curves import by_head, by_offset, clocks, over_places, waves
from explorer.figures.frame import CONFIG
from explorer.figures.learning import held_out, loss
from explorer.figures.spectra import MOST_POINTS, ranks, spectrum

ROWS = [
    {"position": p, "value": math.sin(p), "dimension": name}
    for name in ("dimension 0", "dimension 1")
    for p in range(9)
]
CHARTS = {
    "bars": bars(["a", "a", "<script>"], [0.5, 0.3, 0.2]),
    "no bars": bars([], []),
    "all zero bars": bars(["a"], [0.0]),
    "waves": waves(ROWS),
    "no waves": waves([]),
    "by offset": by_offset([(0, 1.0, 1.5, 2.0), (1, -1.0, 0.0, 1.0)], "product"),
    "by head": by_head([("head 0", 0, 0.0), ("head 0", 1, -0.5), ("head 1", 1, -0.25)], "bias"),
    "by no head": by_head([], "bias"),
    "buckets": by_head([("bucket", -1, 17.0), ("bucket", 0, 0.0)], "bucket"),
    "over places": over_places([1.0, 2.0, math.nan], 1, "keys"),
    "over no place": over_places([], 1, "nats"),
    "clocks": clocks([("pair 0", [(1.0, 0.0), (0.0, 1.0)]), ("pair 1", [(0.0, 0.0)] * 2)], 1),
    "spectrum": spectrum([3.0, 2.0, 0.0], [2.5, 1.5, 0.5], 2.6),
    "spectrum, logarithmic": spectrum([3.0, 2.0, 0.0], [2.5, 1.5, 0.5], 2.6, logarithmic=True),
    "spectrum of zeros": spectrum([0.0, 0.0], [0.0, 0.0], 0.0, logarithmic=True),
    "spectrum of one": spectrum([3.0], [2.5], 2.6),
    "loss": loss(400, math.log(27)),
    "losses": loss(400, run="run"),
    "held out": held_out("exact match", 400, goal=0.99),
    "held out of runs": held_out("nats per token", 400, domain=None, run="run"),
}


def test_a_chart_is_json_that_vega_lite_accepts(subtests: pytest.Subtests) -> None:
    for name in CHARTS:
        with subtests.test(name=name):
            spec = json.loads(json.dumps(CHARTS[name], allow_nan=False))
            spec.setdefault("data", {"name": "given"})
            altair.LayerChart.from_dict(spec) if "layer" in spec else altair.Chart.from_dict(spec)


def test_all_charts_share_one_frame(subtests: pytest.Subtests) -> None:
    for name in CHARTS:
        with subtests.test(name=name):
            assert CHARTS[name]["config"] is CONFIG


def axes(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Every x and y of a chart and of its layers."""
    parts = [spec, *spec.get("layer", [])]
    found = [part.get("encoding", {}).get(side) for part in parts for side in ("x", "y")]
    return [axis for axis in found if axis and axis["type"] == "quantitative"]


FIXED = ["waves", "by offset", "by head", "over places", "loss", "held out", "spectrum"]


def test_the_axes_are_fixed_before_the_data_comes(subtests: pytest.Subtests) -> None:
    for name in FIXED:
        with subtests.test(name=name):
            assert all("domain" in axis["scale"] for axis in axes(CHARTS[name]))


def test_bars_keep_equal_labels_apart_and_cut_long_ones() -> None:
    chart = bars(["same", "same", "x" * 60], [0.5, 0.25, 0.125])
    rows = chart["layer"][0]["data"]["values"]
    assert [row["order"] for row in rows] == [0, 1, 2]
    assert [row["said"] for row in rows] == ["0.500", "0.250", "0.125"]
    assert "…" in rows[2]["shown"]
    assert rows[2]["label"] == "x" * 60, "whole on hover"


def test_charts_while_training_hold_no_data_of_their_own() -> None:
    for chart in (loss(10), held_out("accuracy", 10)):
        assert "data" not in chart


def test_of_many_ranks_the_first_and_the_last_are_drawn(subtests: pytest.Subtests) -> None:
    for count in [0, 1, 2, 399, 400, 401, 512, 768, 4096]:
        with subtests.test(count=count):
            drawn = ranks(count)
            assert len(drawn) == min(count, MOST_POINTS) == len(set(drawn))
            assert drawn == sorted(drawn)
            assert not count or (drawn[0], drawn[-1]) == (0, count - 1)


def test_a_logarithmic_spectrum_has_no_zero() -> None:
    chart = CHARTS["spectrum, logarithmic"]
    assert all(row["value"] > 0 for row in chart["data"]["values"])
    assert chart["data"]["values"][2]["own"] == 0.0, "whole on hover"
    assert chart["layer"][0]["encoding"]["y"]["scale"]["domain"][0] > 0
