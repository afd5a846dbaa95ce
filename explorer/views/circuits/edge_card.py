"""What opens of an edge of a circuit: what it carries, what its weights say, the card of its head.

`draw_edge_card` draws it for any edge, such as one that was clicked.
"""

import streamlit as st

from explorer.analysis.circuits.graph import CircuitNode, Edge
from explorer.analysis.circuits.head_at_work import composition_of
from explorer.analysis.circuits.outcome import UNITS
from explorer.analysis.circuits.text_pairs import Question
from explorer.analysis.head_composition import READS, unrelated
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.catalog.opened_model import Opened
from explorer.text.number_format import three
from explorer.views.circuits.head_card import draw_head_card

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


def composed(opened: Opened, edge: Edge) -> list[str]:
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
