"""Whether the map is faithful: its strongest edges cut, beside as many random ones."""

import streamlit as st

from explorer.analysis.ablation import recorded_pass
from explorer.analysis.faithfulness import (
    DRAWS,
    Faithfulness,
    TooManyEdgesError,
    cutting_cost,
    faithfulness,
)
from explorer.app.context import PageContext
from explorer.app.controls import one_of, whole
from explorer.charts.circuit_charts import EdgeCut, edge_cut_curves
from explorer.components.chart import chart
from explorer.inference.edited_pass import EditedPass
from explorer.views.interventions.output_effects import NO_HEAD, base_words
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.measurement import measurement

THIS_HEAD, WHOLE_LAYER = "This head", "The whole layer"
CHART_HEIGHT = 340


def draw_faithfulness(context: PageContext, edited: EditedPass, position: int) -> Script | None:
    """KL over the number of cut edges, as a chart; gives the lines that make its first curve."""
    opened, at = context.opened, context.choice
    if opened.config.head == "none":
        st.text(NO_HEAD)
        return None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        scope = one_of("edges_of", (THIS_HEAD, WHOLE_LAYER))
        seed = whole("draw_seed", width=160)
    head = at.head if scope == THIS_HEAD else None
    which = at.part, at.layer, head
    lines = script(faithfulness_code, edited, position, *which, seed)
    base = recorded_pass(edited, position)
    try:
        cost = cutting_cost(base, *which)
    except TooManyEdgesError as error:
        st.text(str(error))
        return lines
    found = measurement(
        opened,
        "cuts",
        ("faithfulness", *edited.key, *which, position, seed),
        lambda report: faithfulness(base, *which, seed, report=report),
        lambda made: made.random.nbytes,
        cost=cost,
        doing="Cutting edges",
    )
    if found is None:
        return lines
    if not found.counts:
        st.text("No query attends to any key here, so there is no edge to cut.")
        return lines
    with st.container(key="faithfulness"):
        title = "Output against the number of edges cut"
        chart(edge_cut_curves(points(found)), height=CHART_HEIGHT, key="edges_cut", title=title)
    of = f"layer {at.layer}" if head is None else f"layer {at.layer}, head {head}"
    st.caption(
        f"Attention weights of {of} set to zero, the strongest first or drawn at random ({DRAWS} "
        f"draws: mean and range), {base_words(edited)}. There are {found.edges:,} edges; all are "
        "cut at the last point. If the strongest edges change the output no more than random "
        "ones, the map does not show what matters here."
    )
    return lines


def points(found: Faithfulness) -> list[EdgeCut]:
    """The chart's points: KL of the strongest edges, mean and range of the random draws."""
    return [
        EdgeCut(count, float(best), float(draws.mean()), float(draws.min()), float(draws.max()))
        for count, best, draws in zip(found.counts, found.strongest, found.random, strict=True)
    ]


def faithfulness_code(
    edited: EditedPass, position: int, part: str, layer: int, head: int | None, seed: int
) -> None:
    found = faithfulness(recorded_pass(edited, position), part, layer, head, seed)
    for count, strongest, random in zip(
        found.counts, found.strongest.tolist(), found.random.tolist(), strict=True
    ):
        print(count, strongest, random)  # KL divergence in nats, after so many edges are cut
