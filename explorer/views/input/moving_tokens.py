"""The text's tokens in three dimensions, at every step of their way through a stack."""

import streamlit as st
import torch
from torch.linalg import LinAlgError

from explorer.analysis.embedding_space import (
    EMBEDDING,
    MOST_MOVING_TOKENS,
    NEAREST,
    STREAM,
    UNEMBEDDING,
    EmbeddingSpace,
    TokenPaths,
    as_read,
    embedding_space,
    token_paths,
)
from explorer.analysis.nearest_tokens import NearestTokens, nearest_by_part, parts_of
from explorer.analysis.principal_components import SEED, PrincipalAxes, principal_axes
from explorer.app.context import PageContext
from explorer.app.messages import say
from explorer.app.progress import with_bar
from explorer.catalog.folders import own_name
from explorer.charts.space_scatter import MovingTokens, moving_scatter
from explorer.charts.theme import palette
from explorer.components.chart import Table, plotly_chart
from explorer.inference.results_cache import kept
from explorer.text.number_format import three
from explorer.text.token_labels import named_at, texts
from explorer.text.visible_text import literal
from explorer.views.input.token_neighbours import StackSpace, listed, vocabulary_labels
from explorer.views.shared.tables import table

MEANING = {
    EMBEDDING: "The axes are the first three principal components of the token embedding",
    STREAM: "The axes are the first three principal components of your tokens' vectors at all "
    "steps together",
    UNEMBEDDING: "The axes are the first three principal components of the unembedding; your "
    "tokens' vectors are drawn as it reads them, after the final norm",
}
NOT_FINITE = "These vectors contain NaN or infinite values, so they have no principal components."
STEPS_IN_SIGHT = 8
Labels = dict[int, str]


def draw_moving_tokens(context: PageContext, shown: StackSpace, place: int) -> None:
    """The chart, what it is, and the nearest tokens at every step to the token at `place`."""
    try:
        found = space_of(shown)
    except LinAlgError:
        say(NOT_FINITE)
        return
    every = vocabulary_labels(shown.opened.tokenizer, found.vocabulary)
    labels = dict(zip(found.vocabulary, every, strict=True))
    names = texts([shown.tokens[place] for place in shown.drawn])
    titles = [f"PC{n + 1} · {percent(share)}" for n, share in enumerate(found.axes.shares)]
    drawn = moving_tokens(found, names, labels)
    plotly_chart(
        moving_scatter(drawn, titles, palette(st.context.theme.type)),
        key="embedding_points",
        title=f"{own_name(context.choice.model)} · {shown.axes}, {shown.stack}",
        table=table_of(found, shown, names, labels),
    )
    st.caption(caption_of(found, shown))
    if place in shown.drawn:
        name = literal(named_at(shown.tokens, place))
        of = shown.table_name.lower()
        st.markdown(f"**Nearest to {name} at every step, in the {of}**")
        steps = nearest_by_step(found, shown.drawn.index(place), labels)
        table(steps, most_rows=STEPS_IN_SIGHT)


def nearest_by_step(found: EmbeddingSpace, place: int, labels: Labels) -> dict[str, list[str]]:
    """A row for every step with the nearest tokens and their cosine similarity."""
    cells = [
        [f"{labels[token]}  {three(cosine)}" for token, cosine in found.nearest.pairs(step, place)]
        for step in range(len(found.paths.steps))
    ]
    ranks = {
        f"{rank + 1}.": [row[rank] if rank < len(row) else "" for row in cells]
        for rank in range(NEAREST)
    }
    return {"step": list(found.paths.steps), **ranks}


def space_of(shown: StackSpace) -> EmbeddingSpace:
    """Made once for a text; LinAlgError where a number is not finite."""
    opened, forward = shown.opened, shown.forward

    def axes_of(paths: TokenPaths) -> PrincipalAxes:
        if shown.axes == STREAM:
            return principal_axes(paths.states.flatten(0, 1))
        name = ("principal axes", shown.stack, shown.axes)
        return kept(opened, name, lambda: principal_axes(shown.table))

    def make() -> EmbeddingSpace:
        paths = token_paths(forward, shown.stack, shown.drawn)
        if shown.axes == UNEMBEDDING:
            paths = as_read(opened.model, paths)
        return embedding_space(shown.table, axes_of(paths), paths, _nearest(shown, paths))

    name = ("embedding space", forward.text, forward.pair, shown.stack, shown.axes)
    return kept(opened, name, make)


def _nearest(shown: StackSpace, paths: TokenPaths) -> NearestTokens:
    """The nearest tokens of every token at every step; in the embedding not the token itself."""
    steps, count, width = paths.states.shape
    but = torch.full((steps, count), -1)
    if shown.axes != UNEMBEDDING:
        but[0] = torch.tensor(paths.ids)
    parts = nearest_by_part(shown.table, paths.states.view(-1, width), NEAREST, but.flatten())
    found = with_bar(parts, parts_of(shown.table), "Finding the nearest tokens")[-1]
    size = (steps, count, found.ids.shape[-1])
    return NearestTokens(found.ids.view(size), found.cosines.view(size))


def moving_tokens(found: EmbeddingSpace, names: list[str], labels: Labels) -> MovingTokens:
    """The same as the chart takes it; a token of the vocabulary is drawn once at a step."""
    at = {token: place for place, token in enumerate(found.vocabulary)}
    near = []
    for step in range(len(found.paths.steps)):
        told: dict[int, list[str]] = {}
        for place, name in enumerate(names):
            for token, cosine in found.nearest.pairs(step, place):
                told.setdefault(token, []).append(f"{three(cosine)} to {name}")
        notes = [f"{labels[token]}: {', '.join(each)}" for token, each in told.items()]
        places = found.around[[at[token] for token in told]]
        first = {found.nearest.ids[step, place, 0].item() for place in range(len(names))}
        near.append(([labels[token] if token in first else "" for token in told], notes, places))
    hold = ": these axes hold {} of your tokens' variance"
    return MovingTokens(
        steps=found.paths.steps,
        notes=[
            step if share is None else step + hold.format(percent(share))
            for step, share in zip(found.paths.steps, found.shares, strict=True)
        ],
        labels=names,
        places=found.places,
        tooltips=[
            [
                f"{name}, nearest: {listed(pairs, labels)}" if pairs else name
                for place, name in enumerate(names)
                for pairs in [found.nearest.pairs(step, place)]
            ]
            for step in range(len(found.paths.steps))
        ],
        near=near,
        names=[labels[token] for token in found.vocabulary[: found.sampled]],
        around=found.around[: found.sampled],
    )


def percent(share: float) -> str:
    return f"{three(100 * share)} %"


def table_of(found: EmbeddingSpace, shown: StackSpace, names: list[str], labels: Labels) -> Table:
    """A row for each token at each step with its nearest, then the vocabulary that is drawn."""
    steps, ids, around = found.paths.steps, found.paths.ids, found.vocabulary
    x, y, z = torch.cat([found.places.flatten(0, 1), found.around]).mT.tolist()
    pairs = [found.nearest.pairs(step, at) for step in range(len(steps)) for at in range(len(ids))]
    rest = [""] * len(around)
    return {
        "step": [*(step for step in steps for _ in ids), *rest],
        "position": [*shown.drawn] * len(steps) + [None] * len(around),
        "token ID": [*ids] * len(steps) + [*around],
        "token": names * len(steps) + [labels[token] for token in around],
        "x": x,
        "y": y,
        "z": z,
        "nearest tokens and cosine similarity": [*(listed(each, labels) for each in pairs), *rest],
    }


def caption_of(found: EmbeddingSpace, shown: StackSpace) -> str:
    """What the axes are and hold, and what was left out."""
    axes, size = found.axes, len(shown.table)
    text = (
        f"{MEANING[shown.axes]}. They hold {percent(sum(axes.shares))} of the variance and are "
        "the same at every step. Every vector is drawn at length 1: what points the same way is "
        "near, but what looks near may differ in the other dimensions. Circles are the nearest "
        "tokens by cosine similarity in all dimensions."
    )
    some = f"{found.sampled:,} of {size:,} tokens, sampled with seed {SEED}"
    text += f" Grey is the vocabulary{f': {some}' if found.sampled < size else ''}."
    if axes.rows < axes.size:
        text += f" The components are computed from {axes.rows:,} of {axes.size:,} vectors."
    if len(shown.drawn) < len(shown.tokens):
        which = "first" if shown.stack == "encoder" else "last"
        text += f" The {which} {MOST_MOVING_TOKENS} of your {len(shown.tokens):,} tokens are drawn."
    return text
