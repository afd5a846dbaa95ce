"""Head similarity: the heads most similar to the chosen one, and the matrix of all pairs."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis import head_similarity
from explorer.analysis.head_metrics import ranking
from explorer.analysis.head_similarity import ComparedRows, LayerHead
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.app.progress import with_bar
from explorer.app.sidebar import choose_head
from explorer.components.cells import cells
from explorer.inference.results_cache import kept
from explorer.snippets.head_metrics_code import similarity_script
from explorer.views.heads.finder import head_strip
from explorer.views.shared import widgets
from explorer.views.shared.head_table import NO_VISIBLE_KEYS, input_key

NEAREST = 6
HEIGHT, WIDTH = 690, 740
MOST_IN_WORDS = 48
"""With more heads their rows are too narrow for whole words."""

BY_LAYER, BY_SIMILARITY = "By layer", "By similarity"
MEANING = (
    "Similarity is 1 − the Jensen–Shannon divergence of two heads' rows in bits, averaged over "
    "the rows: 1 for equal rows, 0 where no key has weight in both."
)


@dataclass(frozen=True, eq=False)
class PairwiseDivergence:
    """The divergence (n, n) of every two of these `heads`, and their order by similarity."""

    heads: tuple[LayerHead, ...]
    divergence: Tensor
    order: tuple[int, ...]


def draw_similarity(context: PageContext) -> None:
    """The heads most similar to the chosen one, then the matrix of all."""
    at, part = context.choice, context.part
    if part.layers * part.heads == 1:
        say("This attention has a single head: there is no other to compare it with.")
        return
    found = _rows(context)
    if not found.rows:
        say(NO_VISIBLE_KEYS)
        return
    order = one_of("Order of the heads", "arranged", (BY_LAYER, BY_SIMILARITY))
    rows = f"All {found.of_rows:,} rows of your text are compared."
    if len(found.rows) < found.of_rows:
        rows = (
            f"{len(found.rows):,} of {found.of_rows:,} rows are compared, evenly spaced; fully "
            "masked rows are left out."
        )
    st.caption(f"{MEANING} {rows}")
    st.markdown(f"**Most similar to layer {at.layer}, head {at.head}**")
    _draw_nearest(context, found)
    pairs = _pairs(context, found)
    layer, head = pairs.heads[-1]
    short = f"{layer}.{head} is layer {layer}, head {head}"
    st.markdown(
        f"**All pairs of {len(pairs.heads)} heads** · {short}; a click chooses the row's head"
    )
    if len(pairs.heads) < len(found.heads):
        layers = ", ".join(map(str, sorted({layer for layer, _ in pairs.heads})))
        st.caption(f"Of {len(found.heads):,} heads those of layers {layers} are drawn.")
    _draw_matrix(context, pairs, order)
    here = at.part, at.layer, at.head
    widgets.code(
        head_similarity.js_divergence,
        pasted=lambda: similarity_script(
            context.forward, context.folder, here, found.rows, found.of_rows
        ),
    )


def _draw_nearest(context: PageContext, found: ComparedRows) -> None:
    own = found.heads.index((context.choice.layer, context.choice.head))
    similarity = 1 - head_similarity.js_divergence(found.weights[own], found.weights)
    similarity[own] = torch.nan  # it is not compared with itself
    places = ranking(similarity.reshape(context.part.layers, -1))
    if not places:
        say("The weights of this head are NaN, so it has no similarity to others.")
        return
    head_strip(context, places[:NEAREST], len(places), key="nearest_heads")


def _draw_matrix(context: PageContext, pairs: PairwiseDivergence, order: str) -> None:
    places = list(pairs.order) if order == BY_SIMILARITY else list(range(len(pairs.heads)))
    heads = [pairs.heads[place] for place in places]
    names = [f"layer {layer} · head {head}" for layer, head in heads]
    short = [f"{layer}.{head}" for layer, head in heads]
    chosen = (context.choice.layer, context.choice.head)
    own = heads.index(chosen) if chosen in heads else None

    def pick(row: int, column: int) -> None:
        choose_head(*heads[row])

    with st.container(width=WIDTH):
        cells(
            1 - pairs.divergence[places][:, places],
            names,
            names,
            key="similarity",
            written=(names if len(heads) <= MOST_IN_WORDS else short, short),
            selected=None if own is None else (own, own),
            on_pick=pick,
            row_name="head",
            sentence="{row} and {column}: {value}",
            unit="similarity",
            top=1.0,
            height=min(HEIGHT, 40 * len(heads) + 92),
        )


def _rows(context: PageContext) -> ComparedRows:
    """The rows that are compared, of every head."""
    forward, part = context.forward, context.part

    def make() -> ComparedRows:
        steps = head_similarity.compared_rows(forward, part.name)
        return head_similarity.join_rows(
            with_bar(steps, part.layers, "Computing the weights, by layer")
        )

    key = ("compared rows", part.name, input_key(forward))
    return kept(context.opened, key, make, lambda made: made.weights.nbytes)


def _pairs(context: PageContext, found: ComparedRows) -> PairwiseDivergence:
    part = context.part
    layers = head_similarity.layers_compared(part.layers, part.heads)

    def make() -> PairwiseDivergence:
        chosen = [at for at, (layer, _) in enumerate(found.heads) if layer in layers]
        rows = head_similarity.pairwise_divergence(found.weights[chosen])
        divergence = head_similarity.divergence_matrix(
            with_bar(rows, len(chosen), "Comparing the heads")
        )
        order = tuple(head_similarity.similarity_order(divergence))
        return PairwiseDivergence(tuple(found.heads[at] for at in chosen), divergence, order)

    key = ("similarity", part.name, input_key(context.forward))
    return kept(context.opened, key, make, lambda made: made.divergence.nbytes)
