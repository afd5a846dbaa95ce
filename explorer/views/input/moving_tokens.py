"""The text's tokens on two or three axes, at every step of their way through a stack."""

import streamlit as st
import torch
from torch.linalg import LinAlgError

from explorer.analysis.embedding_space import (
    EMBEDDING,
    MOST_MOVING_TOKENS,
    NEAREST,
    SEED,
    STREAM,
    UNEMBEDDING,
    EmbeddingSpace,
    NearestTokens,
    PrincipalAxes,
    TokenPaths,
    as_read,
    embedding_space,
    nearest_by_part,
    parts_of,
    principal_axes,
    token_paths,
)
from explorer.app.context import PageContext
from explorer.app.messages import say
from explorer.app.progress import with_bar
from explorer.catalog.folders import own_name
from explorer.charts.figure_data import WINDOW
from explorer.charts.space_map import MapPoint, TokenMap, token_map
from explorer.charts.space_scatter import MovingTokens, axis_ranges, moving_scatter
from explorer.charts.theme import palette
from explorer.components.chart import Table, chart, plotly_chart
from explorer.inference.results_cache import cached
from explorer.text.number_format import percent, three
from explorer.text.token_labels import named_at, texts
from explorer.text.visible_text import literal
from explorer.views.input.token_neighbours import SpaceChoice, nearest_list, vocabulary_labels
from explorer.views.shared.tables import table

MEANING = {
    EMBEDDING: "The axes are the first {} principal components of the token embedding",
    STREAM: "The axes are the first {} principal components of your tokens' vectors at all "
    "steps together",
    UNEMBEDDING: "The axes are the first {} principal components of the unembedding; your "
    "tokens' vectors are drawn as it reads them, after the final norm",
}
STEPS_DRAWN = {EMBEDDING: slice(0, 1), STREAM: slice(None), UNEMBEDDING: slice(-1, None)}
"""The steps that are drawn on two axes."""
NOT_FINITE = "These vectors contain NaN or infinite values, so they have no principal components."
STEPS_IN_SIGHT = 8
Labels = dict[int, str]


def draw_moving_tokens(
    context: PageContext, choice: SpaceChoice, place: int, *, in_3d: bool
) -> None:
    """The chart with its caption, and the tokens nearest to the one at `place` at every step."""
    try:
        space = space_of(choice)
    except LinAlgError:
        say(NOT_FINITE)
        return
    every = vocabulary_labels(choice.opened.tokenizer, space.vocabulary)
    labels = dict(zip(space.vocabulary, every, strict=True))
    names = texts([choice.tokens[place] for place in choice.places])
    titles = [
        f"PC{n + 1}, {percent(share)} of the variance" for n, share in enumerate(space.axes.shares)
    ]
    title = f"{own_name(context.choice.model)} · {choice.axes}, {choice.stack}"
    left_out = 0
    if in_3d:
        plotly_chart(
            moving_scatter(
                moving_tokens(space, names, labels), titles, palette(st.context.theme.type)
            ),
            key="embedding_points",
            title=title,
            table=table_of(space, choice, names, labels),
        )
    else:
        chosen = choice.places.index(place) if place in choice.places else None
        steps = STEPS_DRAWN[choice.axes]
        tokens = map_of(space, steps, names, labels, chosen)
        x_and_y = axis_ranges(space.places[steps].flatten(0, 1), space.around)[:2]
        spec, left_out = token_map(tokens, titles[:2], x_and_y)
        chart(spec, key="embedding_map", title=title, height=WINDOW)
    st.caption(caption_of(space, choice, in_3d=in_3d, left_out=left_out))
    if place in choice.places:
        name = literal(named_at(choice.tokens, place))
        st.markdown(f"**Nearest to {name} at every step, in the {choice.table_name.lower()}**")
        table(nearest_by_step(space, choice.places.index(place), labels), most_rows=STEPS_IN_SIGHT)


def nearest_by_step(space: EmbeddingSpace, place: int, labels: Labels) -> dict[str, list[str]]:
    """For every step a row with the nearest tokens and their cosine similarity."""
    cells = [
        [f"{labels[token]}  {three(cosine)}" for token, cosine in space.nearest.pairs(step, place)]
        for step in range(len(space.paths.steps))
    ]
    ranks = {
        f"{rank + 1}.": [row[rank] if rank < len(row) else "" for row in cells]
        for rank in range(NEAREST)
    }
    return {"step": list(space.paths.steps), **ranks}


def space_of(choice: SpaceChoice) -> EmbeddingSpace:
    """Computed once for a text. Raises LinAlgError if a number is not finite."""
    opened, forward = choice.opened, choice.forward

    def axes_of(paths: TokenPaths) -> PrincipalAxes:
        if choice.axes == STREAM:
            return principal_axes(paths.states.flatten(0, 1))
        name = ("principal axes", choice.stack, choice.axes)
        return cached(opened, name, lambda: principal_axes(choice.table))

    def make() -> EmbeddingSpace:
        paths = token_paths(forward, choice.stack, choice.places)
        if choice.axes == UNEMBEDDING:
            paths = as_read(opened.model, paths)
        return embedding_space(choice.table, axes_of(paths), paths, _nearest(choice, paths))

    name = ("embedding space", forward.text, forward.pair, choice.stack, choice.axes)
    return cached(opened, name, make)


def _nearest(choice: SpaceChoice, paths: TokenPaths) -> NearestTokens:
    """The tokens nearest to every token at every step; in the embedding not the token itself."""
    steps, count, width = paths.states.shape
    but = torch.full((steps, count), -1)
    if choice.axes != UNEMBEDDING:
        but[0] = torch.tensor(paths.ids)
    parts = nearest_by_part(choice.table, paths.states.view(-1, width), NEAREST, but.flatten())
    nearest = with_bar(parts, parts_of(choice.table), "Finding the nearest tokens")[-1]
    size = (steps, count, nearest.ids.shape[-1])
    return NearestTokens(nearest.ids.view(size), nearest.cosines.view(size))


def map_of(
    space: EmbeddingSpace, drawn: slice, names: list[str], labels: Labels, chosen: int | None
) -> TokenMap:
    """The space on its first two axes: the tokens at the drawn steps, the last one's neighbours."""
    steps = range(len(space.paths.steps))[drawn]
    x_and_y = dict(zip(space.vocabulary, space.around[:, :2].tolist(), strict=True))
    near = near_to(space, steps[-1], names)
    edges = [] if chosen is None else space.nearest.pairs(steps[-1], chosen)
    ids = dict.fromkeys([*(token for token, _ in edges), *near])
    places = space.places[..., :2].tolist()
    return TokenMap(
        vocabulary=[
            _map_point(labels[token], x_and_y[token], "vocabulary")
            for token in space.vocabulary[: space.sampled]
        ],
        paths=[
            [_map_point(name, places[step][place], space.paths.steps[step]) for step in steps]
            for place, name in enumerate(names)
        ],
        near=[
            _map_point(labels[token], x_and_y[token], f"cosine {', '.join(near[token])}")
            for token in ids
        ],
        n_edges=len(edges),
        chosen=chosen,
    )


def _map_point(token: str, spot: list[float], about: str) -> MapPoint:
    x, y = spot
    return MapPoint(token, x, y, about)


def near_to(space: EmbeddingSpace, step: int, names: list[str]) -> dict[int, list[str]]:
    """The tokens nearest to any of yours at a step, and to which, with the cosine similarity."""
    near: dict[int, list[str]] = {}
    for place, name in enumerate(names):
        for token, cosine in space.nearest.pairs(step, place):
            near.setdefault(token, []).append(f"{three(cosine)} to {name}")
    return near


def moving_tokens(space: EmbeddingSpace, names: list[str], labels: Labels) -> MovingTokens:
    """The space in the form of the chart, which draws a token of the vocabulary once per step."""
    at = {token: place for place, token in enumerate(space.vocabulary)}
    near = []
    for step in range(len(space.paths.steps)):
        around = near_to(space, step, names)
        notes = [f"{labels[token]}: {', '.join(cosines)}" for token, cosines in around.items()]
        places = space.around[[at[token] for token in around]]
        first = {space.nearest.ids[step, place, 0].item() for place in range(len(names))}
        point_labels = [labels[token] if token in first else "" for token in around]
        near.append((point_labels, notes, places))
    hold = ": these axes hold {} of your tokens' variance"
    return MovingTokens(
        steps=space.paths.steps,
        notes=[
            step if share is None else step + hold.format(percent(share))
            for step, share in zip(space.paths.steps, space.shares, strict=True)
        ],
        labels=names,
        places=space.places,
        tooltips=[
            [
                f"{name}, nearest: {nearest_list(pairs, labels)}" if pairs else name
                for place, name in enumerate(names)
                for pairs in [space.nearest.pairs(step, place)]
            ]
            for step in range(len(space.paths.steps))
        ],
        near=near,
        names=[labels[token] for token in space.vocabulary[: space.sampled]],
        around=space.around[: space.sampled],
    )


def table_of(space: EmbeddingSpace, choice: SpaceChoice, names: list[str], labels: Labels) -> Table:
    """A row for each token at each step, then one for each drawn token of the vocabulary."""
    steps, ids, around = space.paths.steps, space.paths.ids, space.vocabulary
    x, y, z = torch.cat([space.places.flatten(0, 1), space.around]).mT.tolist()
    pairs = [space.nearest.pairs(step, at) for step in range(len(steps)) for at in range(len(ids))]
    nearest, rest = [nearest_list(near, labels) for near in pairs], [""] * len(around)
    return {
        "step": [*(step for step in steps for _ in ids), *rest],
        "position": [*choice.places] * len(steps) + [None] * len(around),
        "token ID": [*ids] * len(steps) + [*around],
        "token": names * len(steps) + [labels[token] for token in around],
        "x": x,
        "y": y,
        "z": z,
        "nearest tokens and cosine similarity": [*nearest, *rest],
    }


def caption_of(
    space: EmbeddingSpace, choice: SpaceChoice, *, in_3d: bool = True, left_out: int = 0
) -> str:
    """What the axes are, their share of the variance, and what is left out."""
    axes, size = space.axes, len(choice.table)
    count = 3 if in_3d else 2
    meaning = MEANING[choice.axes].format(("two", "three")[in_3d])
    text = (
        f"{meaning}. They hold {percent(sum(axes.shares[:count]))} of the variance and are "
        "the same at every step. Every vector is drawn at length 1: what points the same way is "
        "near, but what looks near may differ in the other dimensions. Circles are the nearest "
        "tokens by cosine similarity in all dimensions."
    )
    if left_out:
        text += f" {left_out} of the labels would overlap: point at a mark to read its label."
    some = f"{space.sampled:,} of {size:,} tokens, sampled with seed {SEED}"
    text += f" Grey is the vocabulary{f': {some}' if space.sampled < size else ''}."
    if axes.rows < axes.size:
        text += f" The components are computed from {axes.rows:,} of {axes.size:,} vectors."
    if len(choice.places) < len(choice.tokens):
        which = "first" if choice.stack == "encoder" else "last"
        count = len(choice.tokens)
        text += f" The {which} {MOST_MOVING_TOKENS} of your {count:,} tokens are drawn."
    return text
