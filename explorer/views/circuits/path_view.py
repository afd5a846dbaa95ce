"""Path patching on screen: from one head into all later ones, or into one head from all before."""

import streamlit as st
import torch

from explorer.analysis.batch_edits import AddByRow
from explorer.analysis.circuits.measure import mean_over_pairs, node_of
from explorer.analysis.circuits.outcome import UNITS
from explorer.analysis.circuits.text_pairs import Question
from explorer.analysis.exact_edges import exact_edges
from explorer.analysis.patching import Edge, edge_grid, edges_from, edges_into
from explorer.analysis.wiring import INPUTS, Place, Reads, Wiring, WiringError, wiring_of
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.catalog.open_model import OpenModel
from explorer.text.number_format import three
from explorer.views.circuits.measured import cost_of_branches
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import code_panel, script
from explorer.views.shared.heads_grid import heads_grid
from explorer.views.shared.measurement import Report, measurement
from explorer.views.shared.tables import strongest_table

FROM, INTO = "From this head", "Into this head"
INPUT_NAMES = {"q": "Queries", "k": "Keys", "v": "Values"}
TOO_LONG_FOR_PATHS = (
    "A pass for every edge takes too long here: shorten both texts or choose a later layer."
)
LISTED = 10


def draw_paths(context: PageContext, question: Question) -> None:
    """A cell for every head at the other end of an edge, and the strongest edges beside it."""
    opened, at = context.opened, context.choice
    try:
        wiring = wiring_of(opened.config)
    except WiringError as error:
        st.text(str(error))
        return
    with st.container(horizontal=True):
        is_sender = one_of("path_end", (FROM, INTO)) == FROM
        named = one_of("path_reads", tuple(INPUT_NAMES.values()))
    reads = INPUTS[tuple(INPUT_NAMES.values()).index(named)]
    edges = (edges_from if is_sender else edges_into)(wiring, at.layer, at.head, reads)
    values = measurement(
        opened,
        "path_patching",
        ("paths", *question.key, at.layer, at.head, is_sender, reads),
        lambda report: _measure(context, question, edges, report),
        lambda made: 8 * len(made),
        cost=cost_of_branches(opened, question) * len(edges),
        doing="Edge by edge",
        too_long=TOO_LONG_FOR_PATHS,
    )
    if values is None:
        return
    ends = [wiring.rows[row] if is_sender else wiring.columns[column] for row, column in edges]
    drawn, numbers = widgets.side_by_side(6, 4)
    with drawn:
        st.text(_in_words(context, question, wiring, (edges, values)))
        _draw_grid(context, question, wiring, ends, values, (is_sender, named))
        st.caption(_explained(context, question, is_sender, named))
    with numbers:
        st.markdown("**Strongest edges**")
        titles = [edge_title(wiring, edge) for edge in edges]
        unit = UNITS[question.metric] or "metric"
        strongest_table(values, {"edge": titles}, unit, most=LISTED, error=question.error)
    lines = script(paths_code, opened, question, at.layer, at.head, reads, is_sender)
    code_panel(exact_edges, AddByRow, script=lines)


def _measure(
    context: PageContext, question: Question, edges: list[Edge], report: Report
) -> list[float]:
    """The metric that hangs on each edge, the mean over the pairs."""
    lost = [0.0] * len(edges)
    total = len(edges) * len(question.pairs)
    for done, (at, part) in enumerate(mean_over_pairs(context.opened, question, edges)):
        lost[at] += part
        report((done + 1) / total)
    return lost


def edge_title(wiring: Wiring, edge: Edge) -> str:
    """An edge in short, such as “20.0 → 23.2 q”."""
    reader = wiring.rows[edge[0]]
    to = f"{node_of(reader).title} {reader.reads}".strip()
    return f"{node_of(wiring.columns[edge[1]]).title} → {to}"


def _in_words(
    context: PageContext,
    question: Question,
    wiring: Wiring,
    found: tuple[list[Edge], list[float]],
) -> str:
    """The strongest edge, and the one to the logits or from the embedding."""
    edges, values = found
    unit = UNITS[question.metric]
    order = sorted(range(len(edges)), key=lambda at: -abs(values[at]))
    best = order[0]
    among = f"Strongest of {len(edges):,} edges" if len(edges) > 1 else "The only edge"
    most = f"{three(values[best], question.error)} {unit}".rstrip()
    said = [f"{among}: {edge_title(wiring, edges[best])}, with {most}."]
    for at, (row, column) in enumerate(edges):
        kinds = wiring.rows[row].kind, wiring.columns[column].kind
        if at != best and ("logits" in kinds or "embedding" in kinds):
            edge = edge_title(wiring, edges[at])
            value = three(values[at], question.error)
            said.append(f"{edge}: {value} {unit}".rstrip() + ".")
    return " ".join(said)


def _draw_grid(
    context: PageContext,
    question: Question,
    wiring: Wiring,
    ends: list[Place],
    values: list[float],
    how: tuple[bool, str],
) -> None:
    at, (is_sender, named) = context.choice, how
    this = f"head {at.layer}.{at.head}"
    way = f"from {this} into the {named.lower()} of every later head"
    if not is_sender:
        way = f"from every earlier head into the {named.lower()} of {this}"
    heads_grid(
        context,
        edge_grid(wiring, ends, values).mT,
        key="path_ends",
        title=f"{at.called} · Edges {way}",
        layers_across=True,
        unit=UNITS[question.metric],
        absent="no edge",
        scale="diverging",
        error=question.error,
    )


def _explained(context: PageContext, question: Question, is_sender: bool, named: str) -> str:
    config = context.opened.config
    said = [
        "How much of the metric is lost when the receiver alone reads what the sender wrote for "
        "the corrupted text: nothing between them changes, everything behind the receiver does.",
        "MLP is the feed-forward layer, hatched is where there is no edge. A click follows the "
        "edge to that head.",
    ]
    if is_sender and config.d_ff:
        said.append("MLP layers and logits have one input, the same in every choice.")
    if named != INPUT_NAMES["q"] and config.kv_heads < config.n_heads:
        said.append(
            "Heads of a group share keys and values here; only this head's copy of them changes."
        )
    if len(question.pairs) > 1:
        said.append(f"Mean over {len(question.pairs)} pairs.")
    return " ".join(said)


def paths_code(
    opened: OpenModel, question: Question, layer: int, head: int, reads: Reads, is_sender: bool
) -> None:
    wiring = wiring_of(opened.config)
    edges = (edges_from if is_sender else edges_into)(wiring, layer, head, reads)
    lost = torch.zeros(len(edges))
    for at, part in mean_over_pairs(opened, question, edges):
        lost[at] += part
    for (reader, writer), value in zip(edges, lost.tolist(), strict=True):
        print(wiring.columns[writer], wiring.rows[reader], value)
