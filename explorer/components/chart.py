"""A Vega-Lite or plotly chart on the page, whose numbers can be exported with the views'."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

from explorer.app import widget_state
from explorer.app.session import state_of
from explorer.charts.figure_data import WINDOW, TableData, Value
from explorer.charts.figure_text import figure_text
from explorer.charts.plotly_frame import PLOTLY_CONFIG
from explorer.charts.vega_lite import Rows, Spec
from explorer.components.mounting import PageView, PageViews, chart_stage

Table = Mapping[str, Sequence[Value]]


def chart(
    spec: Spec,
    *,
    key: str,
    title: str,
    table: Table | None = None,
    height: int | str | None = None,
    width: Literal["stretch", "content"] = "stretch",
    printed: Spec | None = None,
    on_pick: Callable[[Mapping[str, Any]], None] | None = None,
    chosen: object = "",
) -> None:
    """Draw a chart that holds its rows, or one without rows together with their `table`.

    In print it is the chart `printed`, if that differs.
    With `on_pick` a click in the chart's only selection is told, as its fields by name; a browser
    may send anything. What is `chosen` is a part of the widget's key: the browser tells a click on
    the same mark again only after the chart is new.
    """
    table_with_rows = table if table is not None and any(map(len, table.values())) else None
    columns = table_with_rows or _columns(spec)
    size = {"height": height} if isinstance(height, int) else {}

    def figures() -> list[TableData]:
        data = {}
        if table_with_rows:
            every = zip(*table_with_rows.values(), strict=True)
            data = {"data": {"values": [dict(zip(columns, row, strict=True)) for row in every]}}
        return [TableData(columns, title, spec={**(printed or spec), **size, **data})]

    state_of(PageViews).drawn[key] = PageView(figures)
    how: dict[str, Any] = {"alt": figure_text(title, columns, spec), **size}
    data = [spec] if table is None else [table, spec]
    if isinstance(height, str):
        how["height"] = "stretch"
    name = f"{key}-{chosen}" if on_pick else key
    if on_pick:
        how["on_select"] = partial(hand_over, name, on_pick)
    with chart_stage(key) if height == WINDOW else nullcontext():
        st.vega_lite_chart(*data, width=width, key=name, **how)


def hand_over(name: str, on_pick: Callable[[Mapping[str, Any]], None]) -> None:
    """Tell the mark that is picked in the chart of this name, if there is one."""
    selections = widget_state.get(name, dict[str, Any]()).get("selection", {})
    for marks in selections.values() if isinstance(selections, Mapping) else ():
        if isinstance(marks, list) and marks and isinstance(marks[-1], Mapping):
            on_pick(marks[-1])


def plotly_chart(
    figure: go.Figure, *, key: str, title: str, table: Table, spec: Spec | None = None
) -> None:
    """Draw a plotly chart as large as the window allows.

    Its `table` is exported, and for print the chart `spec`, on two axes.
    """
    state_of(PageViews).drawn[key] = PageView(lambda: [TableData(table, title, spec=spec)])
    alt = figure_text(title, table)
    with chart_stage(key):
        st.plotly_chart(figure, key=key, config=PLOTLY_CONFIG, alt=alt, height="stretch")


def _columns(spec: Spec) -> Table:
    """The rows of every table that a chart holds, as columns; a cell that a row lacks is empty."""
    tables: list[Rows] = [*spec.get("datasets", {}).values()]
    tables += [layer["data"]["values"] for layer in spec["layer"] if "data" in layer]
    rows = [row for table in tables for row in table]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}
