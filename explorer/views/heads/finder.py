"""The head finder: heads ranked by a number, the best of them small, the chosen one large."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import thumbnails
from explorer.analysis.head_metrics import (
    HeadStatistics,
    Ranked,
    Statistic,
    of_heads,
    patterns,
    ranking,
)
from explorer.analysis.measured_heads import measured, rows_counted
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.app.sidebar import choose_head
from explorer.catalog.opened_model import Opened
from explorer.components.ranked import Item, ranked
from explorer.inference.forward_pass import ForwardPass
from explorer.snippets import head_metrics_code
from explorer.text.number_format import three
from explorer.views.shared import widgets
from explorer.views.shared.head_table import NOTHING_SEEN, head_table

BEST = ("6", "12", "24")
HIGHEST, LOWEST = "Highest", "Lowest"
FIRST_ASKED = ("previous", "diagonal")
HEIGHT = 440
LEFT_OUT = (
    "What has no value here is not in this list, such as induction where no token comes twice."
)


def show(opened: Opened, forward: ForwardPass) -> None:
    """The best heads by the chosen number, then all of them as a table, then the chosen one."""
    at = page_context().choice
    found = measured(opened, forward, at.part)
    known = found.known
    if not known:
        say(NOTHING_SEEN)
        return
    chosen, end, best = _choose(known)
    values = found.values[chosen.name]
    places = ranking(values, highest=end == HIGHEST)
    st.caption(f"{chosen.meaning} {rows_counted(found)}")
    strip(forward, places[: int(best)], len(places), key="best_heads")
    table, large = widgets.side_by_side(5, 6)
    with table:
        st.markdown(f"**{chosen.title} of every head**")
        head_table(values, chosen, "heads_table")
    with large:
        _one(forward, found, places, chosen, end)
    widgets.code(
        of_heads,
        patterns,
        pasted=lambda: head_metrics_code.statistics(
            forward, page_context().folder, at.part, at.layer
        ),
    )


def _choose(known: dict[str, Statistic]) -> tuple[Statistic, str, str]:
    with st.container(horizontal=True, vertical_alignment="top"):
        with st.container(width=220):
            usual = [title for title, each in known.items() if each.name in FIRST_ASKED]
            first = (usual or [*known])[0]
            title = one_of("Metric", "metric", list(known), first, as_list=True, help=LEFT_OUT)
        end = one_of("Best is", "best_is", (HIGHEST, LOWEST))
        best = one_of("Shown", "best", BEST)
    return known[title], end, best


def strip(forward: ForwardPass, places: list[Ranked], total: int, key: str) -> None:
    """Heads in their order, small; a click chooses one."""
    at = page_context().choice
    small = thumbnails.of_reading(forward, at.part)
    items = [
        Item(
            each.layer,
            each.head,
            f"{each.place} of {total}",
            three(each.value),
            small.cells[each.layer, each.head],
        )
        for each in places
    ]
    chosen = (at.layer, at.head)
    ranked(items, key=key, selected=chosen, on_pick=choose_head, pooled=small.pooled)


def _one(
    forward: ForwardPass, found: HeadStatistics, places: list[Ranked], chosen: Statistic, end: str
) -> None:
    """Where the chosen head stands, and the head itself."""
    at = page_context().choice
    place = next((each for each in places if (each.layer, each.head) == (at.layer, at.head)), None)
    st.markdown(f"**Layer {at.layer}, head {at.head}** · {forward.part(at.part).title}")
    if place is None:
        st.caption(f"{chosen.title} has no value for this head.")
    else:
        value = three(float(found.values[chosen.name][at.layer, at.head]))
        st.caption(
            f"{place.place} of {len(places)} by {chosen.title.lower()}, {end.lower()} first: "
            f"{value} {chosen.unit}"
        )
    widgets.one_head(forward, key="found_head", height=HEIGHT)
    widgets.ways_on("attention")
