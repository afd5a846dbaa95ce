"""The head finder: heads ranked by a metric, the best ones small, the chosen one large."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

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


def draw_finder(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The best heads by the chosen metric, the chosen head, a grid of all; returns the code.

    Its controls stand in the `row`.
    """
    metrics = measured_heads(context)
    if not metrics.by_title:
        say(why_unmeasured(metrics))
        return None
    with row:
        metric, order, count = _choose(metrics.by_title)
    values = metrics.values[metric.name]
    places = ranking(values, highest=order == HIGHEST)
    named = f"{metric.title}, {order.lower()}"
    best, large = widgets.side_by_side(1, 1)
    with best:
        first = places[: int(count)]
        across = 3 if count == HEADS_SHOWN[0] else 6
        head_strip(context, first, len(places), key="best_heads", order=named, across=across)
    with large:
        widgets.draw_head(context, key="found_head")
    st.caption(f"{metric.meaning} {rows_counted(metrics, metric)}")
    _draw_rank(context, places, metric, order)
    st.markdown(f"**{metric.title} of every head**")
    metric_grid(context, values, metric, "heads_table")
    widgets.page_links("attention")
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
        across=min(across, len(items)),
    )


def _choose(metrics: dict[str, HeadMetric]) -> tuple[HeadMetric, str, str]:
    usual = [title for title, metric in metrics.items() if metric.name in FIRST_CHOICES]
    title = one_of("metric", list(metrics), (usual or [*metrics])[0], as_list=True, width=290)
    with st.popover("Adjust", icon=":material/tune:"):
        order = one_of("best_is", (HIGHEST, LOWEST))
        count = one_of("best", HEADS_SHOWN)
    return metrics[title], order, count


def _draw_rank(
    context: PageContext, places: list[HeadRank], metric: HeadMetric, order: str
) -> None:
    """The rank of the chosen head."""
    at = context.choice
    rank = next((rank for rank in places if (rank.layer, rank.head) == (at.layer, at.head)), None)
    if rank is None:
        st.caption(f"{metric.title} has no value for this head.")
    else:
        unit = "" if metric.unit == "weight" else f" {metric.unit}"
        st.caption(
            f"Rank {rank.place} of {len(places)} by {metric.title.lower()}, {order.lower()}: "
            f"{three(rank.value)}{unit}"
        )
