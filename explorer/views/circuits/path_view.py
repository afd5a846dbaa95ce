"""Path patching on screen: from one head into all later ones, or into one head from all before."""

from __future__ import annotations

import streamlit as st

from explorer.analysis.ablation import MOST
from explorer.analysis.exact_edges import exact_edges
from explorer.analysis.path_patching import Path, path_grid, paths_from, paths_into
from explorer.analysis.wiring import INPUTS, Place, Wiring, WiringError, wiring_of
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.progress import bar
from explorer.catalog.folders import own_name
from explorer.circuits.measure import mean_over_pairs, node_of
from explorer.circuits.outcome import UNITS
from explorer.circuits.text_pairs import Question
from explorer.components.cells import cells
from explorer.inference.forward_pass import ForwardPassError
from explorer.inference.results_cache import kept
from explorer.snippets.tracing_code import path_lines
from explorer.text.number_format import three
from explorer.views.circuits.measured import cost_of_branches
from explorer.views.interventions.many_passes import is_started
from explorer.views.shared import widgets
from models.interventions import AddByRow

FROM, INTO = "From this head", "Into this head"
INPUT_NAMES = {"q": "Queries", "k": "Keys", "v": "Values"}
TOO_LONG = "A pass for every path takes too long here: shorten both texts or choose a later layer."
FEED_FORWARD = "MLP"
LISTED = 10


def draw_paths(context: PageContext, question: Question) -> None:
    """A cell for every head at the other end of a path, and the strongest paths beside it."""
    opened, at = context.opened, context.choice
    try:
        wiring = wiring_of(opened.config)
    except WiringError as error:
        st.text(str(error))
        return
    with st.container(horizontal=True):
        is_sender = one_of("Paths", "path_end", (FROM, INTO)) == FROM
        named = one_of("Read as", "path_reads", tuple(INPUT_NAMES.values()))
    reads = INPUTS[tuple(INPUT_NAMES.values()).index(named)]
    paths = (paths_from if is_sender else paths_into)(wiring, at.layer, at.head, reads)
    cost = cost_of_branches(opened, question) * len(paths)
    if cost > MOST:
        st.text(TOO_LONG)
        return
    key = ("paths", *question.key, at.layer, at.head, is_sender, reads)
    if not is_started("paths", (opened.name, key), cost):
        return
    try:
        values = kept(
            opened, key, lambda: _measure(context, question, paths), lambda made: 8 * len(made)
        )
    except ForwardPassError as error:
        st.text(str(error))
        return
    ends = [wiring.rows[row] if is_sender else wiring.columns[column] for row, column in paths]
    drawn, numbers = widgets.side_by_side(6, 4)
    with drawn:
        st.text(_in_words(context, question, wiring, (paths, values)))
        _draw_grid(context, question, wiring, ends, values, (is_sender, named))
        st.caption(_explained(context, question, is_sender, named))
    with numbers:
        _draw_strongest(question, wiring, paths, values)
    widgets.code_panel(
        exact_edges,
        AddByRow,
        script=lambda: path_lines(
            context.forward,
            context.folder,
            question,
            (at.layer, at.head, reads),
            is_sender=is_sender,
        ),
    )


def _measure(context: PageContext, question: Question, paths: list[Path]) -> list[float]:
    """The metric that hangs on each path, the mean over the pairs."""
    lost = [0.0] * len(paths)
    total = len(paths) * len(question.pairs)
    with bar("Path by path") as report:
        for done, (at, part) in enumerate(mean_over_pairs(context.opened, question, paths)):
            lost[at] += part
            report((done + 1) / total)
    return lost


def path_title(wiring: Wiring, path: Path) -> str:
    """A path in short, such as “20.0 → 23.2 q”."""
    reader = wiring.rows[path[0]]
    to = f"{node_of(reader).title} {reader.reads}".strip()
    return f"{node_of(wiring.columns[path[1]]).title} → {to}"


def _in_words(
    context: PageContext,
    question: Question,
    wiring: Wiring,
    found: tuple[list[Path], list[float]],
) -> str:
    """The strongest path, and the one to the logits or from the embedding."""
    paths, values = found
    unit = UNITS[question.metric]
    order = sorted(range(len(paths)), key=lambda at: -abs(values[at]))
    best = order[0]
    said = [
        f"Strongest of {len(paths):,} paths: {path_title(wiring, paths[best])}, with "
        f"{three(values[best])} {unit}".rstrip()
        + "."
    ]
    for at, (row, column) in enumerate(paths):
        kinds = wiring.rows[row].kind, wiring.columns[column].kind
        if at != best and ("logits" in kinds or "embedding" in kinds):
            path = path_title(wiring, paths[at])
            said.append(f"{path}: {three(values[at])} {unit}".rstrip() + ".")
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
    grid = path_grid(wiring, ends, values)
    heads = [str(head) for head in range(wiring.heads)]
    layers = [str(layer) for layer in range(wiring.layers)]
    more = [FEED_FORWARD] if wiring.has_mlp else []
    this = f"head {at.layer}.{at.head}"
    way = f"from {this} into the {named.lower()} of every later head"
    if not is_sender:
        way = f"from every earlier head into the {named.lower()} of {this}"

    def pick(layer: int, column: int) -> None:
        if column < wiring.heads:
            choose_head(layer, column)

    cells(
        grid,
        layers,
        [*(f"head {head}" for head in heads), *more],
        key="path_ends",
        title=f"{own_name(at.model)} · Paths {way}",
        selected=(at.layer, at.head),
        on_pick=pick,
        column_name="part",
        sentence="Layer {row}, {column}: {value}",
        unit=UNITS[question.metric],
        absent="no path",
        scale="diverging",
        written=(layers, [*heads, *more]),
    )


def _explained(context: PageContext, question: Question, is_sender: bool, named: str) -> str:
    config = context.opened.config
    said = [
        "How much of the metric is lost when the receiver alone reads what the sender wrote for "
        "the corrupted text: nothing between them changes, everything behind the receiver does.",
        "MLP is the feed-forward layer, hatched is where there is no path. A click follows the "
        "path to that head.",
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


def _draw_strongest(
    question: Question, wiring: Wiring, paths: list[Path], values: list[float]
) -> None:
    st.markdown("**Strongest paths**")
    order = sorted(range(len(paths)), key=lambda at: -abs(values[at]))[:LISTED]
    unit = UNITS[question.metric] or "metric"
    st.dataframe(
        {
            "path": [path_title(wiring, paths[at]) for at in order],
            unit: [three(values[at]) for at in order],
        },
        hide_index=True,
        column_config={unit: st.column_config.TextColumn(alignment="right")},
    )
