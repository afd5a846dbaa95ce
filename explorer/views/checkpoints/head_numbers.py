"""What every head does with the reader's text, in one number of their choice."""

from __future__ import annotations

import streamlit as st

from explorer.analysis.head_metrics import METRICS, HeadMetric, HeadMetrics
from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.catalog.entries import Opened
from explorer.text.number_format import three
from explorer.views.checkpoints.view_choice import pick
from explorer.views.shared import widgets
from explorer.views.shared.head_table import (
    NO_VISIBLE_KEYS,
    head_table,
    measured_heads,
    rows_counted,
)
from explorer.views.shared.tables import column, facts


def show(opened: Opened) -> None:
    """Layers down, heads across; then every number of every head."""
    context = page_context()
    at, forward = context.choice, context.forward
    found = measured_heads(context)
    known = found.known
    if not known:
        say(NO_VISIBLE_KEYS)
        return
    title = pick("Statistic", "statistic", list(known), next(iter(known)))
    chosen = known[title]
    part = forward.part(at.part)
    drawn, numbers = widgets.side_by_side(7, 3)
    with drawn:
        st.markdown(f"**{title}** · {part.title}, layers down, heads across")
        head_table(context, found.values[chosen.name], chosen, "head_statistics")
        st.caption(f"{chosen.meaning} {rows_counted(found)}")
    with numbers:
        st.markdown(f"**Layer {at.layer}, head {at.head}**")
        facts([(each.title, _said(found, each, at.layer, at.head)) for each in known.values()])
    st.markdown("**Every head**")
    _list(found)


def _said(found: HeadMetrics, statistic: HeadMetric, layer: int, head: int) -> str:
    return three(float(found.values[statistic.name][layer, head]))


def _list(found: HeadMetrics) -> None:
    depth, heads = found.values["entropy"].shape
    st.dataframe(
        {
            "layer": [layer for layer in range(depth) for _ in range(heads)],
            "head": list(range(heads)) * depth,
            **{each.title: column(found.values[each.name].flatten()) for each in METRICS.values()},
        },
        hide_index=True,
        height=min(420, 38 + 35 * depth * heads),
        column_config={
            each.title: st.column_config.NumberColumn(
                format="%.3f" if each.top else "%.2f", help=each.meaning
            )
            for each in METRICS.values()
        },
    )
