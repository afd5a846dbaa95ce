"""The circuit: its strongest edges, and how much of the difference it explains at every size."""

import streamlit as st
import torch

from explorer.analysis.ablation_and_patching import exact_edges
from explorer.analysis.attribution_patching import attribute
from explorer.analysis.circuit_faithfulness import CorruptedPass, circuit_curve, smallest_circuit
from explorer.analysis.circuit_metrics import UNITS
from explorer.analysis.circuits.head_at_work import composition_of
from explorer.analysis.circuits.measure import (
    METHODS,
    EdgeScores,
    attributions,
    correlation,
    corrupted_passes,
    mean_over_pairs,
    scores_of,
)
from explorer.analysis.circuits.text_pairs import Question
from explorer.analysis.head_circuits import READS, unrelated
from explorer.analysis.wiring import CircuitNode, Edge
from explorer.app.context import PageContext
from explorer.app.controls import one_of, whole
from explorer.catalog.open_model import OpenModel
from explorer.charts.circuit_charts import circuit_curves
from explorer.components.chart import chart
from explorer.text.number_format import three
from explorer.views.circuits.circuit_picture import draw_circuit_map
from explorer.views.circuits.head_card import draw_head_card
from explorer.views.circuits.measured import (
    FaithfulnessCurve,
    choose_method,
    curve_of,
    exact_by_now,
    exact_of_edges,
    scores_of_question,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import code_panel, script

NO_HEAD_AT_EDGE = "Neither end of this edge is a head, so there is no attention map to show."


def draw_edge_card(context: PageContext, question: Question, edge: Edge) -> None:
    """The edge in a sentence or two, then the card of the head at one of its ends."""
    st.markdown(f"**{edge.title}**")
    st.markdown(
        " ".join([carried(edge, question.metric, question.error), *composed(context.opened, edge)])
    )
    ends = {each.title: each for each in (edge.target, edge.source) if each.kind == "head"}
    if not ends:
        st.caption(NO_HEAD_AT_EDGE)
        return
    names = tuple(ends)
    picked = one_of("card_of", names) if len(names) > 1 else names[0]
    head = ends[picked]
    draw_head_card(context, question, head.layer, head.head)


def carried(edge: Edge, metric: str, error: float = 0.0) -> str:
    """How much of the metric it carries; the exact value may be off by `error`."""
    unit = f" {UNITS[metric]}" if UNITS[metric] else ""
    spread = "" if edge.spread is None else f" ± {three(edge.spread)}"
    exact = "" if edge.exact is None else f", {three(edge.exact, error)}{unit} by patching"
    return f"It carries {three(edge.estimate)}{spread}{unit} of the metric by estimate{exact}."


def composed(opened: OpenModel, edge: Edge) -> list[str]:
    """What the weights of two heads say of the edge between them; nothing of another edge."""
    if not (edge.source.kind == edge.target.kind == "head" and edge.reads in READS):
        return []
    scores = composition_of(opened, edge.target.layer, edge.target.head)[READS.index(edge.reads)]
    score = float(scores[_at(edge.source)])
    place = int((scores > score).sum()) + 1
    times = three(score / unrelated(opened.config.d_model))
    return [
        f"By weights alone, {edge.reads.upper()}-composition of {edge.target.title} with "
        f"{edge.source.title} is {times} × that of unrelated heads, rank {place} of "
        f"{scores.numel():,} earlier heads."
    ]


def _at(node: CircuitNode) -> tuple[int, int]:
    return node.layer, node.head


CURVES_HEIGHT = 320
TABLE_HEIGHT = 420


def draw_circuit(context: PageContext, question: Question) -> None:
    """The strongest edges drawn and listed, with exact values, and the curves of all sizes."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        method = choose_method(question)
        count = whole("patched_edges", width=180)
    if method is None:
        return
    scores = scores_of_question(context, question, method)
    if scores is None:
        return
    if scores.edges is None:
        st.text(scores.why_no_edges)
        return
    exact = exact_of_edges(context, question, scores, method, min(count, len(scores.order)))
    edges = [
        scores.edge(*place, None if exact is None else exact[at])
        for at, place in enumerate(scores.strongest(count))
    ]
    parts: list[float | None] = [*(exact_by_now(context.opened, question) or ())]
    parts = parts or [None] * len(scores.writers)
    chosen = draw_circuit_map(context, question, scores, method, exact or (), parts)
    if chosen is not None:
        with st.container(border=True):
            if isinstance(chosen, Edge):
                draw_edge_card(context, question, chosen)
            else:
                draw_head_card(context, question, chosen.layer, chosen.head)
    curves, listed = widgets.side_by_side(6, 5)
    with curves:
        st.markdown("**How much of the difference a circuit explains**")
        curve = curve_of(context, question, scores, method)
        if curve is not None:
            _draw_curve(curve, scores)
    with listed:
        _draw_edges(question, edges, method)
    lines = script(circuit_code, context.opened, question, METHODS[method], len(edges))
    code_panel(attribute, exact_edges, CorruptedPass.metrics, script=lines)


def _draw_curve(curve: FaithfulnessCurve, scores: EdgeScores) -> None:
    spec = circuit_curves(curve.points, curve.smallest)
    title = "Share of the difference that circuits of every size restore"
    chart(spec, height=CURVES_HEIGHT, key="circuit_curves", title=title)
    total = len(scores.order)
    if curve.smallest is None:
        st.text(f"No circuit that was tried restores 90 %, out of {total:,} edges.")
    else:
        share = three(100 * curve.smallest / total)
        st.text(
            f"About {curve.smallest:,} of {total:,} edges ({share} %), the strongest, restore "
            "90 % of the difference."
        )
    st.caption(
        "In a circuit's pass only its edges carry the clean text and all others the corrupted one: "
        "0 is the metric of the corrupted text, 1 that of the clean one. Faithfulness is what the "
        "circuit alone restores, completeness what is left in all edges but the circuit's. Random "
        "circuits have as many edges each; drawn is their mean and range."
    )


def _draw_edges(question: Question, edges: list[Edge], method: str) -> None:
    st.markdown("**Strongest edges**")
    known = [(edge.estimate, edge.exact) for edge in edges if edge.exact is not None]
    r = correlation([about for about, _ in known], [value for _, value in known])
    table = {
        "edge": [edge.title for edge in edges],
        method: [three(edge.estimate) for edge in edges],
        "exact": ["" if e.exact is None else three(e.exact, question.error) for e in edges],
    }
    if any(edge.spread is not None for edge in edges):
        table["spread"] = ["" if e.spread is None else three(e.spread) for e in edges]
    right = st.column_config.TextColumn(alignment="right")
    columns = dict.fromkeys([*table][1:], right)
    st.dataframe(table, hide_index=True, height=TABLE_HEIGHT, column_config=columns)
    if r is not None:
        st.text(f"Pearson's r of estimate and exact value over these {len(known)} edges: {r:.3f}.")


def circuit_code(opened: OpenModel, question: Question, steps: int, count: int) -> None:
    scores = scores_of(opened, [*attributions(opened, question, steps)])
    strongest = scores.strongest(count)
    exact = torch.zeros(len(strongest))
    for at, lost in mean_over_pairs(opened, question, strongest):
        exact[at] += lost
    for place, value in zip(strongest, exact.tolist(), strict=True):
        print(scores.edge(*place, value))
    passes, clean = corrupted_passes(opened, question), sum(scores.clean) / len(scores.clean)
    points = [*circuit_curve(passes, clean, scores.order)]
    print(*points, sep="\n")  # a circuit of each size
    print(smallest_circuit(passes, clean, scores.order, points))  # edges for 90 %
