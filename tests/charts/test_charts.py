"""Every chart is a spec that Vega-Lite's own schema accepts, and stands still."""

import json
import math
from itertools import pairwise
from typing import Any

import altair
import pytest
import torch

from explorer.charts import training_curves
from explorer.charts.bars import before_after_bars, dimension_bars, score_bars
from explorer.charts.circuit_charts import (
    deletion_curves_chart,
    edge_cut_curves,
    steering_chart,
)
from explorer.charts.head_charts import head_points, program_grid
from explorer.charts.network import Stroke, network
from explorer.charts.position_curves import (
    distance_curve,
    head_curves,
    offset_curve,
    position_curve,
    rotation_clocks,
    wave_curves,
)
from explorer.charts.run_charts import MOST_ALIGNED, aligned, overlaid_curves
from explorer.charts.singular_value_chart import (
    MOST_SINGULAR_VALUES,
    drawn_ranks,
    singular_value_curves,
)
from explorer.charts.space_map import MapPoint, TokenMap, label_sides, token_map
from explorer.charts.theme import LIGHT
from explorer.charts.vega_lite import CHART_CONFIG
from models.config import SCHEDULES, TrainConfig
from models.schedules import learning_rate

NAN, INF = math.nan, math.inf
ROWS = [
    {"position": p, "value": math.sin(p), "dimension": name}
    for name in ("dimension 0", "dimension 1")
    for p in range(9)
]
CHARTS: dict[str, dict[str, Any]] = {
    "bars": score_bars(["a", "a", "<script>"], [0.5, 0.3, 0.2]),
    "bars without numbers": score_bars(["a", "b"], [NAN, 0.5]),
    "no bars": score_bars([], []),
    "network": network((9, 9), [Stroke([(0, 0)], "k", 2)], [], [], {"k": LIGHT.text}, ["k"]),
    "all zero bars": score_bars(["a"], [0.0]),
    "heads": head_points([{"layer": 1, "head": 0, "x": 0.5, "y": 2.0}], ("a", "b"), (1, 0)),
    "programs": program_grid(
        [{"layer": 0, "head": 0, "program": "self", "mixture": "100% self", "overlap": 0.5}],
        "layer",
        "head",
    ),
    "no heads": head_points([], ("a", "b"), (0, 0)),
    "waves": wave_curves(ROWS),
    "waves without numbers": wave_curves([ROWS[0], ROWS[1] | {"value": NAN}]),
    "no waves": wave_curves([]),
    "by offset without numbers": offset_curve([(0, NAN, INF, NAN), (1, 0.0, 0.5, 1.0)], "product"),
    "by head without numbers": head_curves([("head 0", 0, NAN), ("head 0", 1, 0.5)], "bias"),
    "clocks without numbers": rotation_clocks([("pair 0", [(NAN, INF), (1.0, 0.0)])], 1),
    "by offset": offset_curve([(0, 1.0, 1.5, 2.0), (1, -1.0, 0.0, 1.0)], "product"),
    "by head": head_curves([("head 0", 0, 0.0), ("head 0", 1, -0.5), ("head 1", 1, -0.25)], "bias"),
    "by no head": head_curves([], "bias"),
    "buckets": head_curves([("bucket", -1, 17.0), ("bucket", 0, 0.0)], "bucket"),
    "over places": position_curve([1.0, 2.0, NAN], 1, "keys"),
    "over no place": position_curve([], 1, "nats"),
    "clocks": rotation_clocks([("pair 0", [(1.0, 0.0), (0.0, 1.0)]), ("pair 1", [(0, 0)] * 2)], 1),
    "spectrum": singular_value_curves([3.0, 2.0, 0.0], [2.5, 1.5, 0.5]),
    "logarithms": singular_value_curves([3.0, 2.0, 0.0], [2.5, 1.5, 0.5], 2.6, logarithmic=True),
    "spectrum of zeros": singular_value_curves([0.0, 0.0], [0.0, 0.0], 0.0, logarithmic=True),
    "spectrum of one": singular_value_curves([3.0], [2.5], 2.6),
    "loss": training_curves.loss_curves(400, math.log(27)),
    "losses": training_curves.loss_curves(400, 0.0, run="run"),
    "held out": training_curves.held_out_curves("exact match", 400, goal=0.99),
    "held out of runs": training_curves.held_out_curves("nats per token", 400, run="run"),
    "pairs": before_after_bars(["cat", "dog"], [0.75, 0.25], [0.5, 0.5]),
    "pairs without numbers": before_after_bars(["cat", "dog"], [0.75, 0.25], [NAN, INF]),
    "edges": edge_cut_curves([1, 2], torch.tensor([0.5, 1.5]), torch.tensor([[0.2], [0.3]])),
    "edges of NaN": edge_cut_curves(
        [1, 2], torch.tensor([0.5, NAN]), torch.tensor([[NAN, INF], [0.0, 0.0]])
    ),
    "no edge with a number": edge_cut_curves([1], torch.tensor([NAN]), torch.tensor([[NAN]])),
    "deleted": deletion_curves_chart(
        [0, 2], {"attention": torch.tensor([0.5, 0.1])}, torch.tensor([[0.5, 0.2]]), "probability"
    ),
    "steered": steering_chart(
        "layer", [-1, 2], torch.arange(6.0).view(3, 2), torch.zeros(3, 2), "loss", 1.0
    ),
    "steered without numbers": steering_chart(
        "strength", [0.0], torch.tensor([[NAN], [1.0]]), torch.tensor([[INF], [-INF]]), "loss", 0.0
    ),
    "not steered": steering_chart("head", [], torch.zeros(3, 0), torch.zeros(3, 0), "loss", 0.0),
    "products by size": dimension_bars([0.5, -2.0, 0.0, 1.25], [1, 3, 0, 2], "product", last=True),
    "products without numbers": dimension_bars([NAN, INF, 1.0], [0, 1, 2], "key"),
    "one product": dimension_bars([1.0], [0], "key", last=True),
    "many products": dimension_bars([1.0, -1.0] * 128, list(range(256)), "key", last=True),
    "by distance": distance_curve([(-1, 0.5), (0, 1.0), (3, -2.0)], 3, "score"),
    "by distance without numbers": distance_curve([(0, NAN)], 0, "score"),
    "one distance": distance_curve([(0, 1.0)], 0, "bias"),
}
POINTS = [MapPoint("a" * 8, 0.5, 0.5)] * 5 + [MapPoint("b", 1.0, 0.5), MapPoint("c", NAN, 0.5)]
UNIT = [(0.0, 1.0), (0.0, 1.0)]
CHARTS["map"], LEFT_OUT = token_map(TokenMap(POINTS, [POINTS], POINTS[:5], 2, 0), "xy", UNIT)
FIXED = "by offset,by head,over places,held out,map,waves,loss,spectrum,steered".split(",")


def test_a_chart_is_json_that_vega_lite_accepts_in_the_one_frame(subtests: pytest.Subtests) -> None:
    for name, chart in CHARTS.items():
        with subtests.test(name=name):
            assert chart["config"] is CHART_CONFIG
            spec = json.loads(json.dumps(chart, allow_nan=False))
            spec.setdefault("data", {"name": "given"})
            altair.TopLevelSpec.validate(spec)


def test_the_labels_of_a_map_overlap_nothing_and_stay_inside() -> None:
    assert label_sides(POINTS[:6], UNIT) == ["right", "left", "above", "below", None, "left"]
    assert LEFT_OUT == 1
    shown = [part for part in CHARTS["map"]["layer"] if "transform" in part]  # narrow, and wide
    assert {row["narrow"] for part in shown for row in part["data"]["values"]} == {True, False}


def domains(chart: dict[str, Any], axis: str) -> list[list[float] | None]:
    """The ends of this axis in every layer that has it."""
    sides = [part["encoding"].get(axis) for part in chart["layer"]]
    numbers = [side for side in sides if side and side.get("type") == "quantitative"]
    return [side.get("scale", {}).get("domain") for side in numbers]


def test_the_axes_are_fixed_before_the_data_comes() -> None:
    for name in FIXED:
        found = [ends for axis in "xy" for ends in domains(CHARTS[name], axis)]
        assert found, name
        assert all(ends and None not in ends for ends in found), name


def test_curves_that_are_compared_have_one_axis() -> None:
    """Each holds the values of the other."""
    offsets, heads = [(0, 0.5, 0.5, 0.5)], [("head 0", 0, 0.5)]
    beside = [-3.0, 7.0]
    for chart in (
        wave_curves([{"position": 0, "value": 0.5, "dimension": "dimension 0"}], beside),
        offset_curve(offsets, "product", beside),
        head_curves(heads, "bias", compared=beside),
    ):
        low, high = next(ends for ends in domains(chart, "y") if ends)
        assert low < -3.0
        assert high > 7.0
    three, many = ([("pair", [(0.0, 1.0)])] * count for count in (3, 7))
    assert rotation_clocks(many, 0)["width"] == 2 * rotation_clocks(three, 0)["width"]


def test_bars_keep_equal_labels_apart_and_cut_long_ones() -> None:
    chart = score_bars(["same", "same", "x" * 60], [0.5, 0.25, 0.125])
    rows = chart["layer"][0]["data"]["values"]
    assert [row["order"] for row in rows] == [0, 1, 2]
    assert [row["number"] for row in rows] == ["0.500", "0.250", "0.125"]
    assert "…" in chart["params"][0]["value"][2]
    assert rows[2]["label"] == "x" * 60, "whole on hover"


def test_of_many_ranks_the_first_and_the_last_are_drawn() -> None:
    for count in (0, 1, 2, 399, 400, 401, 512, 4096):
        drawn = drawn_ranks(count)
        assert len(drawn) == min(count, MOST_SINGULAR_VALUES) == len(set(drawn)), count
        assert drawn == sorted(drawn), count
        assert not count or (drawn[0], drawn[-1]) == (0, count - 1)
    chart = CHARTS["logarithms"]
    assert all(row["value"] > 0 for row in chart["datasets"]["rows"])
    assert chart["datasets"]["rows"][2]["own"] == 0.0, "whole on hover"
    assert all(ends and ends[0] > 0 for ends in domains(chart, "y"))


def test_a_long_curve_is_thinned_and_ends_where_it_ends() -> None:
    points = [(step, float(step)) for step in range(1, 10_001)]
    few = training_curves.thinned(points)
    assert len(few) <= training_curves.MOST_POINTS
    assert few[-1][0] == 10_000
    assert few[0][1] == sum(range(1, few[0][0] + 1)) / few[0][0]
    assert training_curves.thinned([]) == []
    assert training_curves.thinned([(1, 2.0)]) == [(1, 2.0)]
    for count in (0, 1, 2, 300, 301, 599, 601, 1_000, 12_345):
        points = [(step, step / 7) for step in range(count)]
        kept = training_curves.spread(points)
        assert len(kept) <= training_curves.MOST_POINTS + 1, count
        assert kept[:1] == points[:1], count
        assert kept[-1:] == points[-1:], count
        assert set(kept) <= set(points), "no value is made up"
        gaps = {after - before for (before, _), (after, _) in pairwise(kept[:-1])}
        assert len(gaps) <= 1, (count, gaps)
    assert training_curves.spread(points[:300]) == points[:300]


def test_charts_of_a_training_hold_no_data_and_end_where_the_run_will() -> None:
    assert "data" not in CHARTS["loss"]
    assert "data" not in CHARTS["held out"]
    assert domains(CHARTS["loss"], "x")[0] == [0, 400]
    share = CHARTS["held out"]
    assert domains(share, "y")[0] == [0.0, 1.0]
    assert share["layer"][-1]["data"]["values"] == [{"goal": 0.99}]
    nats = training_curves.held_out_curves("nats per token", 10, domain=(0.0, 4.5))
    assert domains(nats, "y")[0] == [0.0, 4.5]
    assert len(nats["layer"]) == 2, "no goal, no line"


def test_what_is_no_number_has_no_bar_and_is_said() -> None:
    chart = CHARTS["pairs without numbers"]
    rows = chart["layer"][0]["data"]["values"]
    assert [row["value"] for row in rows] == [0.75, 0.25, None, None]
    assert [row["number"] for row in rows] == ["0.7500", "0.2500", "no value", "no value"]
    assert chart["params"][0]["value"][0].endswith("0.750 → no value")
    rows = CHARTS["products without numbers"]["datasets"]["rows"]
    assert [row["value"] for row in rows] == [None, None, 1.0]
    for name, top in (("edges", 1.5), ("edges of NaN", 0.5), ("no edge with a number", 1)):
        assert domains(CHARTS[name], "y") == [[0, top], [0, top]], name


def test_products_keep_their_order_and_tell_the_running_sum() -> None:
    rows = CHARTS["products by size"]["datasets"]["rows"]
    assert [row["dimension"] for row in rows] == [1, 3, 0, 2]
    assert [row["sum"] for row in rows] == [-2.0, -0.75, -0.25, -0.25]
    assert [row["side"] for row in rows][:2] == ["below zero", "above zero"]
    marks = [layer.get("data", {}).get("values") for layer in CHARTS["by distance"]["layer"]]
    assert marks[1] == marks[2] == [{"distance": 3, "value": -2.0}]


def column(table: dict[str, list[object]], name: str) -> list[tuple[object, object]]:
    rows = zip(table["name"], table["x"], table["value"], strict=True)
    return [(x, value) for each, x, value in rows if each == name]


def test_the_last_value_stays_and_a_long_curve_is_a_mean_of_neighbours() -> None:
    table = aligned({"a": [(0.0, 1.0), (3.0, 2.0)], "b": [(2.0, 5.0)], "c": []}, "last")
    assert column(table, "a") == [(0, 1.0), (1, 1.0), (2, 1.0), (3, 2.0)]
    assert column(table, "b") == [(2, 5.0)]
    assert set(table["run"]) == {"r0", "r1"}
    curve = [(float(step), float(step)) for step in range(1, 1 + 4 * MOST_ALIGNED)]
    found = column(aligned({"a": curve}, "mean"), "a")
    assert (len(found), found[0]) == (MOST_ALIGNED, (4, 2.5))


def test_32_runs_have_32_looks() -> None:
    spec = overlaid_curves([f"lr {n}" for n in range(32)], "step", "loss", LIGHT, is_stepped=False)
    encoding = spec["layer"][0]["encoding"]
    colours, dashes = (encoding[name]["scale"]["range"] for name in ("color", "strokeDash"))
    assert len(set(zip(colours, map(tuple, dashes), strict=True))) == 32
    assert len(spec["layer"][1]["encoding"]["tooltip"]) == 33


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_planned_rates_are_those_of_the_training(schedule: str) -> None:
    training = TrainConfig(steps=100_000, warmup=777, schedule=schedule)
    planned = training_curves.planned_rates(training)
    assert len(planned) <= training_curves.MOST_RATES + 4
    assert planned[0][0] == 1
    assert planned[-1][0] == 100_000
    assert all(rate == learning_rate(training, step - 1) for step, rate in planned)
    assert max(rate for _, rate in planned) == pytest.approx(training.lr), "the top is kept"


def test_a_rate_that_a_run_has_had_stays_in_the_picture() -> None:
    table = training_curves.rate_table([(step, 0.5) for step in range(1, 400)])
    assert table["step"][-1] == 399
    assert len(table["rate"]) <= training_curves.MOST_RATES + 1
    spec = training_curves.schedule_chart(TrainConfig(steps=400, lr=0.1), max(table["rate"]))
    assert all(ends == [0, 0.5] for ends in domains(spec, "y"))
