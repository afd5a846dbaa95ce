"""All heads on a map of two measures of your choice; a click chooses a head."""

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
from explorer.charts.head_points import HeadPoint, head_points
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
"""The metrics that are on each axis at first: the first of them that has a value."""


def draw_scatter(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The map of all heads and the chosen one; its controls stand in the `row`."""
    at, metrics = context.choice, measured_heads(context)
    by_title = metrics.by_title
    if not by_title:
        say(why_unmeasured(metrics))
        return None
    by_name = {metric.name: title for title, metric in by_title.items()}
    with row:
        titles = [
            one_of(
                key,
                list(by_title),
                next((by_name[name] for name in names if name in by_name), next(iter(by_title))),
                as_list=True,
                width=210,
            )
            for key, names in USUAL.items()
        ]
    x, y = (by_title[title] for title in titles)
    layers, heads = metrics.values[x.name].shape
    every = [
        HeadPoint(place // heads, place % heads, *both)
        for place, both in enumerate(
            zip(*(metrics.values[of.name].flatten().tolist() for of in (x, y)), strict=True)
        )
    ]
    points = [point for point in every if math.isfinite(point.x) and math.isfinite(point.y)]

    def pick(mark: Mapping[str, Any]) -> None:
        layer, head = events.place(mark.get("layer"), layers), events.place(mark.get("head"), heads)
        if layer is not None and head is not None:
            choose_head(layer, head)

    large, chosen = widgets.side_by_side(3, 2)
    with large:
        units = ["" if of.unit == "weight" else f", {of.unit}" for of in (x, y)]
        axes = (f"{titles[0]}{units[0]}", f"{titles[1]}{units[1]}")
        title = map_title(at.called, at.part, f"Heads by {x.title.lower()} and {y.title.lower()}")
        here = every[at.layer * heads + at.head]
        chart(
            head_points(points, axes, here),
            key="heads_map",
            title=title,
            height=WINDOW,
            on_pick=pick,
            chosen=f"{at.part}.{at.layer}.{at.head}",
        )
    with chosen:
        widgets.draw_head(context, key="head_of_map")
    left = len(every) - len(points)
    missing = f" {left:,} of {len(every):,} heads have no value of both and are left out."
    means = {of.title: f"{of.title}: {of.meaning} {rows_counted(metrics, of)}" for of in (x, y)}
    click = "Each point is a head; the ring is around the chosen one, and a click chooses another."
    st.caption(f"{click}{missing * (left > 0)} {' '.join(means.values())}")
    return script(metrics_code, context.forward, at.part, at.layer)
