"""The charts in plotly: their numbers are those that were given, and labels are never markup."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
import pytest
import torch

from explorer.catalog.parameters import ParameterNode, parameter_tree, tree_lines
from explorer.charts import sankey_and_icicle
from explorer.charts.plotly_frame import plain_label
from explorer.charts.run_charts import parallel_axis, parallel_runs
from explorer.charts.sankey_and_icicle import (
    FlowEdge,
    parameter_boxes,
    parameter_icicle,
    rollout_sankey,
    strongest_edges,
)
from explorer.charts.space_scatter import MovingTokens, moving_scatter
from explorer.charts.surfaces import surface_of_positions
from explorer.charts.theme import DARK, LIGHT
from models import Transformer, TransformerConfig

LINK = '<a href="https://example.org">x</a>'


def plain(figure: go.Figure) -> dict[str, Any]:
    sent: dict[str, Any] = json.loads(figure.to_json())
    return sent


def test_a_label_is_never_markup() -> None:
    assert plain_label("<s>") == "&lt;s&gt;"
    assert "<" not in plain_label(LINK, 100)
    named = replace(moving(1, 1), labels=[LINK], tooltips=[[LINK]], names=[LINK])
    scatter = moving_scatter(named, "xyz", LIGHT)
    shown = [
        scatter.data[3].customdata,
        scatter.data[0].customdata,
        rollout_sankey([FlowEdge(0, 0, 0, 1.0)], [LINK], 1, LIGHT).data[0].node.label,
        parameter_icicle(ParameterNode(LINK, 3), LIGHT).data[0].labels,
        parallel_runs([LINK], {LINK: [LINK]}, [1.0], LIGHT).data[0].customdata[0],
        parallel_runs(["a"], {LINK: [LINK]}, [1.0], LIGHT).layout.xaxis.ticktext,
        [each.text for each in parallel_runs(["a"], {"b": [LINK]}, [1], LIGHT).layout.annotations],
    ]
    assert all("<" not in text for texts in shown for text in texts)


def moving(steps: int = 3, tokens: int = 2) -> MovingTokens:
    places = torch.zeros(steps, tokens, 3)
    places[..., 0] = torch.arange(float(steps))[:, None]
    places[..., 1] = torch.arange(float(tokens))
    return MovingTokens(
        steps=[f"step {step}" for step in range(steps)],
        notes=[f"note {step}" for step in range(steps)],
        labels=["a", "b"][:tokens],
        places=places,
        tooltips=[[f"{name}: {step}" for name in "ab"[:tokens]] for step in range(steps)],
        near=[(["v"], [f"v: {step}"], torch.tensor([[0.0, 5.0, 0.0]])) for step in range(steps)],
        names=["w"],
        around=torch.tensor([[0.0, 0.0, -4.0]]),
    )


def test_tokens_are_drawn_at_a_step_and_in_a_frame_of_every_step() -> None:
    sent = plain(moving_scatter(moving(), ["one", "two", "three"], DARK, start=1))
    vocabulary, ways, near, tokens = sent["data"]
    assert (tokens["x"], tokens["y"], tokens["text"]) == ([1, 1], [0, 1], ["a", "b"])
    assert ways["x"] == [0, 1, 2, None, 0, 1, 2, None]
    assert tokens["customdata"] == ["a: 1", "b: 1"]
    assert (near["text"], near["customdata"]) == (["v"], ["v: 1"])
    assert vocabulary["z"] == [-4]
    steps = {frame["name"]: frame for frame in sent["frames"] if frame["name"].isdecimal()}
    assert list(steps) == ["0", "1", "2"]
    assert [frame["data"][1]["x"] for frame in steps.values()] == [[0, 0], [1, 1], [2, 2]]
    said = [frame["layout"]["annotations"][0]["text"] for frame in steps.values()]
    assert said == ["note 0", "note 1", "note 2"]
    (slider,) = sent["layout"]["sliders"]
    assert [step["args"][0] for step in slider["steps"]] == [["0"], ["1"], ["2"]]
    assert slider["active"] == 1
    axes = sent["layout"]["scene"]
    assert axes["xaxis"]["title"]["text"] == "one"
    assert axes["yaxis"]["range"][0] < 0 < 5 < axes["yaxis"]["range"][1], "of all steps"
    ends = [(name, *axes[f"{name}axis"]["range"]) for name in "xyz"]
    units = [axes["aspectratio"][name] / (high - low) for name, low, high in ends]
    assert units == pytest.approx([units[0]] * 3), "a unit is as long on every axis"


def test_tokens_go_straight_and_evenly_from_step_to_step() -> None:
    frames = plain(moving_scatter(moving(), "xyz", LIGHT))["frames"]
    between = [frame for frame in frames if frame["name"].startswith("0+")]
    assert 3 <= len(between) <= 20
    seen = [0.0, *(frame["data"][0]["x"][0] for frame in between), 1.0]
    ways = [after - before for before, after in pairwise(seen)]
    assert max(ways) - min(ways) < 1e-3
    many = plain(moving_scatter(moving(40), "xyz", LIGHT))["frames"]
    assert len(many) < 40 * 4, "many steps are quicker"
    one = moving(1)  # has no slider, and what is no number is left out
    one.places[0, 1] = torch.nan
    sent = plain(moving_scatter(one, "xyz", LIGHT))
    assert not sent.get("frames")
    assert "sliders" not in sent["layout"]
    assert sent["data"][3]["x"] == [0, None]


def test_a_surface_is_even_around_zero_where_it_has_both_signs() -> None:
    both = surface_of_positions(torch.tensor([[1.0, -3.0], [0.0, 2.0]]), "bias", LIGHT).data[0]
    assert (both.cmin, both.cmax) == (-3, 3)
    assert [list(row) for row in both.z] == [[1, -3], [0, 2]]
    assert both.colorscale[10][1] == LIGHT.background
    above = surface_of_positions(torch.tensor([[1.0, 3.0]]), "product", LIGHT).data[0]
    assert (above.cmin, above.cmax) == (0, 3)
    assert surface_of_positions(torch.zeros(2, 2), "product", DARK).data[0].cmax == 1
    both = torch.tensor([[1.0, 0.5]]), torch.tensor([[-0.25, 2.0]])
    for values, other in (both, both[::-1]):
        figure = surface_of_positions(values, "product", LIGHT, [other])
        assert (figure.data[0].cmin, figure.data[0].cmax) == (-2, 2)
        assert figure.layout.scene.zaxis.range == (-0.25, 2)
    assert surface_of_positions(both[0], "product", LIGHT).layout.scene.zaxis.range is None


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_the_boxes_of_an_icicle_add_up_to_the_model(kind: str) -> None:
    model = Transformer(TransformerConfig(kind=kind, n_layers=3))
    node = parameter_tree(model)
    boxes = [*parameter_boxes(node)]
    counts = {name: count for name, _, _, count in boxes}
    assert counts["0"] == sum(each.numel() for each in model.parameters())
    for name, _, part, count in boxes:
        inside = [counts[child] for child, parent, _, _ in boxes if parent == name]
        assert not part.children or sum(inside) == count, name
    assert len(boxes) == sum(part.count > 0 for _, part in tree_lines(node))
    (drawn,) = plain(parameter_icicle(node, LIGHT))["data"]
    assert drawn["values"] == [*counts.values()]
    assert drawn["branchvalues"] == "total"


def test_a_sankey_joins_each_layer_to_the_next() -> None:
    edges = [FlowEdge(0, 0, 1, 0.4), FlowEdge(0, 1, 1, 0.6), FlowEdge(1, 1, 1, 1.0)]
    (drawn,) = plain(rollout_sankey(edges, ["a", "b"], 2, LIGHT))["data"]
    assert drawn["node"]["label"] == ["a", "b", "b", "b"]
    assert drawn["node"]["customdata"][0::3] == ["the text", "after layer 1"]
    assert drawn["link"]["source"] == [0, 1, 2]
    assert drawn["link"]["target"] == [2, 2, 3]
    assert drawn["link"]["value"] == [0.4, 0.6, 1.0]
    shares = [torch.tensor([[0.5, 0.0], [0.3, 0.2]]), torch.tensor([[0.0, 0.0], [0.75, 0.25]])]
    assert strongest_edges(shares, 2) == [
        FlowEdge(0, 0, 0, 0.5),
        FlowEdge(0, 0, 1, pytest.approx(0.3)),  # type: ignore[arg-type]
        FlowEdge(1, 0, 1, 0.75),
        FlowEdge(1, 1, 1, 0.25),
    ]
    assert len(strongest_edges([torch.rand(9, 9)])) == sankey_and_icicle.EDGES_DRAWN


def test_an_axis_places_numbers_by_size_and_texts_in_order() -> None:
    assert parallel_axis([1.0, 3.0, 2.0])[0] == [0.0, 1.0, 0.5]
    assert parallel_axis([1.0, 3.0])[1] == {0.0: "1", 1.0: "3"}
    assert parallel_axis(["b", "a"])[0] == [1.0, 0.0]
    assert parallel_axis([5, 5])[0] == [0.5, 0.5]
    assert parallel_axis([*range(10)])[1] == {0.0: "0", 1.0: "9"}
    columns: dict[str, list[Any]] = {"lr": [0.1, 0.2], "norm": ["rms", "layer"], "em": [0.5, 1.0]}
    first, second = plain(parallel_runs(["r-1", "r-2"], columns, [0.5, 1.0], LIGHT))["data"]
    assert (first["y"], second["y"]) == ([0, 1, 0], [1, 0, 1])
    assert second["line"]["color"] == LIGHT.sequential[-1], "the largest result"
    assert first["customdata"] == [["r-1", "0.1"], ["r-1", "rms"], ["r-1", "0.5"]]
