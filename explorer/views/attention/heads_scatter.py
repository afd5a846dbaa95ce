"""All heads on a map of two metrics of your choice; a click chooses a head."""

import math
from collections.abc import Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog.attention_parts import map_title
from explorer.charts.figure_data import WINDOW
from explorer.charts.head_points import head_points
from explorer.components import events
from explorer.components.chart import chart
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import (
    measured_heads,
    metrics_code,
    rows_counted,
    why_unmeasured,
)

USUAL = {"across": ("distance", "spread"), "up": ("previous", "diagonal", "largest")}
"""The metrics of each axis at first: the first of them that has a value."""


def draw_scatter(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The map of all heads, and the chosen one; its controls stand in the `row`."""
    at, metrics = context.choice, measured_heads(context)
    titles = metrics.by_title
    if not titles:
        say(why_unmeasured(metrics))
        return None
    by_name = {metric.name: title for title, metric in titles.items()}
    with row:
        x, y = (
            titles[
                one_of(
                    key,
                    list(titles),
                    next((by_name[name] for name in names if name in by_name), ""),
                    as_list=True,
                    width=210,
                )
            ]
            for key, names in USUAL.items()
        )
    values = [metrics.values[of.name] for of in (x, y)]
    layers, heads = values[0].shape
    pairs = zip(*(of.flatten().tolist() for of in values), strict=True)
    rows = [
        {"layer": place // heads, "head": place % heads, "x": across, "y": up}
        for place, (across, up) in enumerate(pairs)
        if math.isfinite(across) and math.isfinite(up)
    ]

    def pick(mark: Mapping[str, Any]) -> None:
        place = events.cell([mark.get("layer"), mark.get("head")], layers, heads)
        if place is not None:
            choose_head(*place)

    large, chosen = widgets.side_by_side(3, 2)
    with large:
        units = ["" if of.unit == "weight" else f", {of.unit}" for of in (x, y)]
        chart(
            head_points(rows, (x.title + units[0], y.title + units[1]), (at.layer, at.head)),
            key="heads_map",
            title=map_title(at.called, at.part, f"{x.title} and {y.title} of every head"),
            height=WINDOW,
            on_pick=pick,
            chosen=at.place,
        )
    with chosen:
        widgets.draw_head(context, key="head_of_map")
    every, missing = layers * heads, layers * heads - len(rows)
    left = f" {missing:,} of {every:,} heads lack a value and are left out." if missing else ""
    means = dict.fromkeys(f"{of.title}: {of.meaning} {rows_counted(metrics, of)}" for of in (x, y))
    st.caption(f"A point is a head, and a click chooses it.{left} {' '.join(means)}")
    return script(metrics_code, context.forward, at.part, at.layer)
