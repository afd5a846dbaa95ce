"""Heads that look alike: every two of them compared, and those nearest to the chosen one."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis import head_similarity
from explorer.analysis.head_metrics import ranking
from explorer.analysis.head_similarity import Head, Looks
from explorer.analysis.measured_heads import tokens_read
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.app.progress import with_bar
from explorer.app.sidebar import choose_head
from explorer.catalog.opened_model import Opened
from explorer.components.cells import cells
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.snippets import head_metrics_code
from explorer.views.heads.finder import strip
from explorer.views.shared import widgets
from explorer.views.shared.head_table import NOTHING_SEEN

NEAREST = 6
HEIGHT, WIDTH = 690, 740
MOST_IN_WORDS = 48
"""With more heads their rows are too narrow for whole words."""

BY_LAYER, BY_LIKENESS = "By layer", "By likeness"
MEANING = (
    "Likeness is one less the Jensen–Shannon divergence of two heads' rows, in bits, on average "
    "over the rows: 1 looks alike everywhere, 0 never gives weight to the same key."
)


@dataclass(frozen=True, eq=False)
class Compared:
    """Heads in the order of the layers, how far apart every two are, and an order by likeness."""

    heads: tuple[Head, ...]
    distance: Tensor
    order: tuple[int, ...]


def show(opened: Opened, forward: ForwardPass) -> None:
    """The heads nearest to the chosen one, then the table of all."""
    at = page_context().choice
    part = forward.part(at.part)
    if part.layers * part.heads == 1:
        say("This attention has a single head, and nothing to compare it with.")
        return
    found = _looks(opened, forward)
    if not found.rows:
        say(NOTHING_SEEN)
        return
    arranged = one_of("Arranged", "arranged", (BY_LAYER, BY_LIKENESS))
    st.caption(f"{MEANING} {_rows(found)}")
    st.markdown(f"**Most like layer {at.layer}, head {at.head}**")
    _nearest(forward, found)
    table = _table(opened, forward, found)
    n = len(table.heads)
    layer, head = table.heads[-1]
    short = f"{layer}.{head} is layer {layer}, head {head}"
    st.markdown(f"**Every two of {n} heads** · {short}; a click chooses the head of the row")
    if n < len(found.heads):
        layers = sorted({layer for layer, _ in table.heads})
        said = ", ".join(map(str, layers))
        st.caption(f"Of {len(found.heads):,} heads those of the layers {said} are drawn.")
    _draw(table, arranged)
    here, rows = (at.part, at.layer, at.head), (found.rows, found.of_rows)
    widgets.code(
        head_similarity.apart,
        pasted=lambda: head_metrics_code.likeness(forward, page_context().folder, here, *rows),
    )


def _nearest(forward: ForwardPass, found: Looks) -> None:
    at = page_context().choice
    own = found.heads.index((at.layer, at.head))
    alike = 1 - head_similarity.apart(found.weights[own], found.weights)
    alike[own] = torch.nan  # it is not compared with itself
    places = ranking(alike.reshape(forward.part(at.part).layers, -1))
    if not places:
        say("The weights of this head are no numbers, so nothing is like it.")
        return
    strip(forward, places[:NEAREST], len(places), key="nearest_heads")


def _draw(table: Compared, arranged: str) -> None:
    at = page_context().choice
    order = table.order if arranged == BY_LIKENESS else range(len(table.heads))
    heads = [table.heads[place] for place in order]
    names = [f"layer {layer} · head {head}" for layer, head in heads]
    short = [f"{layer}.{head}" for layer, head in heads]
    chosen = (at.layer, at.head)
    own = heads.index(chosen) if chosen in heads else None

    def pick(row: int, column: int) -> None:
        choose_head(*heads[row])

    with st.container(width=WIDTH):
        cells(
            1 - table.distance[list(order)][:, list(order)],
            names,
            names,
            key="likeness",
            written=(names if len(heads) <= MOST_IN_WORDS else short, short),
            selected=None if own is None else (own, own),
            on_pick=pick,
            row_name="head",
            sentence="{row} and {column}: {value}",
            unit="likeness",
            top=1.0,
            height=min(HEIGHT, 40 * len(heads) + 92),
        )


def _looks(opened: Opened, forward: ForwardPass) -> Looks:
    """The rows that are compared, of every head."""
    part = page_context().choice.part
    layers = forward.part(part).layers

    def make() -> Looks:
        steps = head_similarity.looks(forward, part)
        return head_similarity.joined(with_bar(steps, layers, "Reading the heads, by layer"))

    return kept(
        opened,
        ("looks", part, tokens_read(forward)),
        make,
        lambda made: made.weights.nbytes,
    )


def _table(opened: Opened, forward: ForwardPass, found: Looks) -> Compared:
    part = page_context().choice.part
    shape = forward.part(part)
    layers = head_similarity.layers_compared(shape.layers, shape.heads)

    def make() -> Compared:
        chosen = [at for at, (layer, _) in enumerate(found.heads) if layer in layers]
        rows = head_similarity.distances(found.weights[chosen])
        distance = head_similarity.table(with_bar(rows, len(chosen), "Comparing the heads"))
        order = tuple(head_similarity.by_likeness(distance))
        return Compared(tuple(found.heads[at] for at in chosen), distance, order)

    return kept(
        opened,
        ("likeness", part, tokens_read(forward)),
        make,
        lambda made: made.distance.nbytes,
    )


def _rows(found: Looks) -> str:
    if len(found.rows) == found.of_rows:
        return f"Compared are all {found.of_rows:,} rows of your text."
    return (
        f"Compared are {len(found.rows):,} of the {found.of_rows:,} rows, at even distances; "
        "rows that see nothing are left out."
    )
