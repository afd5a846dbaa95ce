"""One metric of the reader's choice, for every head of the chosen model on their text."""

import streamlit as st

from explorer.analysis.head_metrics import METRICS, HeadMetrics
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog.opened_model import OpenModel
from explorer.text.number_format import three
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import (
    measured_heads,
    metric_grid,
    metrics_code,
    rows_counted,
    why_unmeasured,
)
from explorer.views.shared.tables import column, facts, table


def draw_head_metrics(context: PageContext, opened: OpenModel) -> Script:
    """Draw one metric, layers down and heads across; then every metric of every head."""
    at, forward = context.choice, context.forward
    metrics = measured_heads(context)
    if metrics.by_title:
        _draw_metrics(context, metrics)
    else:
        say(why_unmeasured(metrics))
    widgets.notes(forward.notes)
    return script(metrics_code, forward, at.part, at.layer)


def _draw_metrics(context: PageContext, metrics: HeadMetrics) -> None:
    layer, head = context.choice.layer, context.choice.head
    by_title = metrics.by_title
    title = one_of("statistic", list(by_title), next(iter(by_title)), label_visibility="collapsed")
    chosen = by_title[title]
    grid_column, numbers = widgets.side_by_side(7, 3)
    with grid_column:
        st.markdown(f"**{title}** · {context.part.words.name}, layers down, heads across")
        metric_grid(context, metrics.values[chosen.name], chosen, "head_statistics")
        st.caption(f"{chosen.meaning} {rows_counted(metrics, chosen)}")
    with numbers:
        st.markdown(f"**Layer {layer}, head {head}**")
        facts(
            [
                (name, three(float(metrics.values[metric.name][layer, head])))
                for name, metric in by_title.items()
            ]
        )
    st.markdown("**Every head**")
    depth, heads = metrics.values["entropy"].shape
    table(
        {
            "layer": [layer for layer in range(depth) for _ in range(heads)],
            "head": list(range(heads)) * depth,
            **{
                metric.title: column(metrics.values[metric.name].flatten())
                for metric in METRICS.values()
            },
        },
        config={
            metric.title: st.column_config.NumberColumn(
                format="%.3f" if metric.top else "%.2f", help=metric.meaning
            )
            for metric in METRICS.values()
        },
    )
