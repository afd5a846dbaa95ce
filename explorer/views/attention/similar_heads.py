"""Head similarity: the heads most similar to the chosen one, and the matrix of all pairs."""

from itertools import product

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis.head_metrics import ranking
from explorer.analysis.head_similarity import (
    divergence_matrix,
    js_divergence,
    layers_compared,
    pairwise_divergence,
    rows_compared,
    rows_of_heads,
    similarity_order,
)
from explorer.app.choosing import choose_head
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.app.progress import with_bar
from explorer.catalog.attention_parts import map_title
from explorer.components.picker import cells
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.views.attention.head_finder import head_strip
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script, script
from explorer.views.shared.heads_grid import NO_VISIBLE_KEYS, input_key

NEAREST_HEADS = 6
MOST_IN_WORDS = 48
"""With more heads their rows are too narrow for whole words."""

BY_LAYER, BY_SIMILARITY = "By layer", "By similarity"
MEANING = (
    "Similarity is 1 − the Jensen–Shannon divergence of two heads' rows in bits, averaged over "
    "the rows: 1 for equal rows, 0 where no key has weight in both."
)


def draw_similarity(context: PageContext, row: DeltaGenerator) -> Script | None:
    """The matrix of all pairs and the heads most similar to the chosen one; returns the code.

    Its control stands in the `row`.
    """
    at, forward, part = context.choice, context.forward, context.part
    if part.layers * part.heads == 1:
        say("This attention has a single head: there is no other to compare it with.")
        return None
    rows, count = rows_compared(forward, at.part), len(forward.rows(at.part))
    if not rows:
        say(NO_VISIBLE_KEYS)
        return None
    with row:
        order = one_of("arranged", (BY_LAYER, BY_SIMILARITY))
    compared = f"All {count:,} rows of your text are compared."
    if len(rows) < count:
        compared = (
            f"{len(rows):,} of {count:,} rows are compared, evenly spaced; fully masked rows are "
            "left out."
        )
    weights = _weights(context, rows)
    layers = layers_compared(part.layers, part.heads)
    heads = list(product(layers, range(part.heads)))
    divergence, by_similarity = _divergence(context, weights, layers)
    places = by_similarity if order == BY_SIMILARITY else list(range(len(heads)))
    pairs, nearest = widgets.side_by_side(3, 2)
    with pairs:
        _draw_matrix(context, divergence[places][:, places], [heads[place] for place in places])
    with nearest:
        _draw_nearest(context, weights)
    last, head = heads[-1]
    short = f"{last}.{head} is layer {last}, head {head}; a click chooses the head of the row."
    if len(layers) < part.layers:
        every, some = part.layers * part.heads, ", ".join(map(str, layers))
        short += (
            f" Of {every:,} heads those of layers {some} are drawn: with all of them a cell would "
            "be too small to point at."
        )
    st.caption(f"{MEANING} {compared} {short}")
    return script(similarity_code, forward, *at.place)


def _draw_nearest(context: PageContext, weights: Tensor) -> None:
    own = context.choice.layer * context.part.heads + context.choice.head
    similarity = 1 - js_divergence(weights[own], weights)
    similarity[own] = torch.nan  # it is not compared with itself
    places = ranking(similarity.reshape(context.part.layers, -1))
    if not places:
        say("The weights of this head are NaN, so it has no similarity to others.")
        return
    at = context.choice
    order = f"Similarity to layer {at.layer}, head {at.head}"
    head_strip(
        context, places[:NEAREST_HEADS], len(places), key="nearest_heads", order=order, across=2
    )


def _draw_matrix(context: PageContext, divergence: Tensor, heads: list[tuple[int, int]]) -> None:
    names = [f"layer {layer} · head {head}" for layer, head in heads]
    short = [f"{layer}.{head}" for layer, head in heads]
    at = context.choice
    chosen = (at.layer, at.head)
    own = heads.index(chosen) if chosen in heads else None

    def pick(row: int, column: int) -> None:
        choose_head(*heads[row])

    cells(
        1 - divergence,
        names,
        names,
        key="similarity",
        title=map_title(at.called, at.part, "Similarity of every two heads"),
        short_names=(names if len(heads) <= MOST_IN_WORDS else short, short),
        selected=None if own is None else (own, own),
        on_pick=pick,
        row_name="head",
        sentence="{row} and {column}: {value}",
        unit="similarity",
        top=1.0,
    )


def _weights(context: PageContext, rows: tuple[int, ...]) -> Tensor:
    """These rows of all heads, (layers × heads, r, k)."""
    forward, part = context.forward, context.part

    def make() -> Tensor:
        steps = rows_of_heads(forward, part.name, rows)
        return torch.cat(with_bar(steps, part.layers, "Computing the weights, by layer"))

    key = ("compared rows", part.name, input_key(forward))
    return cached(context.opened, key, make)


def _divergence(
    context: PageContext, weights: Tensor, layers: tuple[int, ...]
) -> tuple[Tensor, list[int]]:
    """The divergence (n, n) of every two heads of these layers, and their order by similarity."""
    part = context.part

    def make() -> tuple[Tensor, list[int]]:
        some = weights.unflatten(0, (part.layers, part.heads))[list(layers)].flatten(0, 1)
        steps = pairwise_divergence(some)
        divergence = divergence_matrix(with_bar(steps, len(some), "Comparing the heads"))
        return divergence, similarity_order(divergence)

    key = ("similarity", part.name, input_key(context.forward))
    return cached(context.opened, key, make)


def similarity_code(forward: ForwardPass, part: str, layer: int, head: int) -> None:
    rows = rows_compared(forward, part)
    every, heads = torch.cat([*rows_of_heads(forward, part, rows)]), forward.part(part).heads
    similarity = 1 - js_divergence(every[layer * heads + head], every)
    print(similarity.reshape(-1, heads))  # layers down, heads across
