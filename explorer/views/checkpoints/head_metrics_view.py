"""Every head of the chosen model over the reader's text, in one metric of their choice."""

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
    """Layers down, heads across; then every metric of every head."""
    at, forward = context.choice, context.forward
    found = measured_heads(context)
    if found.known:
        _draw_metrics(context, found)
    else:
        say(why_unmeasured(found))
    widgets.notes(forward.notes)
    return script(metrics_code, forward, at.part, at.layer)


def _draw_metrics(context: PageContext, found: HeadMetrics) -> None:
    layer, head = context.choice.layer, context.choice.head
    known = found.known
    title = one_of("statistic", list(known), next(iter(known)), label_visibility="collapsed")
    chosen = known[title]
    drawn, numbers = widgets.side_by_side(7, 3)
    with drawn:
        st.markdown(f"**{title}** · {context.part.words.name}, layers down, heads across")
        metric_grid(context, found.values[chosen.name], chosen, "head_statistics")
        st.caption(f"{chosen.meaning} {rows_counted(found, chosen)}")
    with numbers:
        st.markdown(f"**Layer {layer}, head {head}**")
        values = {each.title: found.values[each.name][layer, head] for each in known.values()}
        facts([(name, three(float(value))) for name, value in values.items()])
    st.markdown("**Every head**")
    depth, heads = found.values["entropy"].shape
    table(
        {
            "layer": [layer for layer in range(depth) for _ in range(heads)],
            "head": list(range(heads)) * depth,
            **{each.title: column(found.values[each.name].flatten()) for each in METRICS.values()},
        },
        config={
            each.title: st.column_config.NumberColumn(
                format="%.3f" if each.top else "%.2f", help=each.meaning
            )
            for each in METRICS.values()
        },
    )
