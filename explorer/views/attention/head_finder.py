"""The head finder: heads ranked by a metric, the best ones small, the chosen one large."""

import streamlit as st

from explorer.analysis.head_metrics import HeadMetric, HeadRank, ranking
from explorer.analysis.thumbnails import thumbnails_of
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.catalog.attention_parts import map_title
from explorer.components.picker import RankedHead, ranked
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

HEADS_SHOWN = ("6", "12", "24")
HIGHEST, LOWEST = "Highest first", "Lowest first"
FIRST_CHOICES = ("previous", "diagonal")


def draw_finder(context: PageContext) -> Script | None:
    """The best heads by the chosen metric, a grid of all, the chosen head; returns the code."""
    metrics = measured_heads(context)
    if not metrics.by_title:
        say(why_unmeasured(metrics))
        return None
    metric, order, count = _choose(metrics.by_title)
    values = metrics.values[metric.name]
    places = ranking(values, highest=order == HIGHEST)
    named = f"{metric.title}, {order.lower()}"
    best, large = widgets.side_by_side(1, 1)
    with best:
        first = places[: int(count)]
        head_strip(context, first, len(places), key="best_heads", order=named, across=3)
        st.caption(f"{metric.meaning} {rows_counted(metrics, metric)}")
        st.markdown(f"**{metric.title} of every head**")
        metric_grid(context, values, metric, "heads_table")
    with large:
        _draw_chosen(context, places, metric, order)
    at = context.choice
    return script(metrics_code, context.forward, at.part, at.layer)


def head_strip(
    context: PageContext, places: list[HeadRank], total: int, key: str, order: str, across: int = 6
) -> None:
    """Ranked heads as thumbnails; `order` names the ranking, and a click chooses a head."""
    at = context.choice
    small = thumbnails_of(context.forward, at.part)
    items = [
        RankedHead(
            rank.layer,
            rank.head,
            f"{rank.place} of {total}",
            three(rank.value),
            small.cells[rank.layer, rank.head],
        )
        for rank in places
    ]
    ranked(
        items,
        key=key,
        title=map_title(at.called, at.part, f"Heads by {order[:1].lower()}{order[1:]}"),
        selected=(at.layer, at.head),
        on_pick=choose_head,
        pooled=small.pooled,
        across=across,
    )


def _choose(metrics: dict[str, HeadMetric]) -> tuple[HeadMetric, str, str]:
    with st.container(horizontal=True, vertical_alignment="top"):
        with st.container(width=220):
            usual = [title for title, metric in metrics.items() if metric.name in FIRST_CHOICES]
            title = one_of("metric", list(metrics), (usual or [*metrics])[0], as_list=True)
        order = one_of("best_is", (HIGHEST, LOWEST))
        count = one_of("best", HEADS_SHOWN)
    return metrics[title], order, count


def _draw_chosen(
    context: PageContext, places: list[HeadRank], metric: HeadMetric, order: str
) -> None:
    """The rank of the chosen head, and the head itself."""
    at = context.choice
    rank = next((rank for rank in places if (rank.layer, rank.head) == (at.layer, at.head)), None)
    st.markdown(widgets.head_heading(context))
    if rank is None:
        st.caption(f"{metric.title} has no value for this head.")
    else:
        unit = "" if metric.unit == "weight" else f" {metric.unit}"
        st.caption(
            f"Rank {rank.place} of {len(places)} by {metric.title.lower()}, {order.lower()}: "
            f"{three(rank.value)}{unit}"
        )
    widgets.draw_head(context, key="found_head")
    widgets.page_links("attention")
