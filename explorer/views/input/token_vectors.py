"""The vectors of tokens: the nearest ones, and their way through a stack on two or three axes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
import torch
from torch import Tensor
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
    is_tied,
    nearest_by_part,
    nearest_tokens,
    parts_of,
    principal_axes,
    token_paths,
    unembedding,
)
from explorer.app.context import PageContext
from explorer.app.controls import text_field, token
from explorer.app.messages import say
from explorer.app.progress import with_bar
from explorer.catalog.opened_model import OpenModel
from explorer.charts.figure_data import WINDOW
from explorer.charts.space_map import PRINTED_SIZE, MapPoint, TokenMap, token_map
from explorer.charts.space_scatter import MovingTokens, axis_ranges, moving_scatter
from explorer.charts.theme import palette
from explorer.components.chart import Table, chart, plotly_chart
from explorer.inference.answers import one_token
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.text import AnyTokenizer, Token
from explorer.text.number_format import percent, three
from explorer.text.token_labels import candidate_text, labels_of, named_at, texts
from explorer.text.visible_text import in_quotes, literal
from explorer.views.shared import tables


@dataclass(frozen=True, eq=False)
class SpaceChoice:
    """The chosen stack, and the vectors whose principal components are the axes."""

    opened: OpenModel
    forward: ForwardPass
    stack: str
    axes: str

    @property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens that the stack reads."""
        return self.forward.source if self.stack == "encoder" else self.forward.target

    @property
    def places(self) -> range:
        """The places of the drawn tokens: the first of an encoder's, the last of a decoder's."""
        count = len(self.tokens)
        most = min(count, MOST_MOVING_TOKENS)
        return range(most) if self.stack == "encoder" else range(count - most, count)

    @property
    def table(self) -> Tensor:
        """The rows (v, d) of the vocabulary that are drawn on these axes."""
        return self.rows_of(self.table_name)

    @property
    def table_name(self) -> str:
        return UNEMBEDDING if self.axes == UNEMBEDDING else EMBEDDING

    @property
    def tables(self) -> tuple[str, ...]:
        """The token embedding of the stack, and the unembedding if it is another matrix."""
        is_other = self.has_unembedding and not is_tied(self.opened.model)
        return (EMBEDDING, UNEMBEDDING) if is_other else (EMBEDDING,)

    @property
    def has_unembedding(self) -> bool:
        """Whether the output head reads the final vectors of this stack."""
        is_last = self.stack == self.opened.config.stacks[-1]
        return is_last and unembedding(self.opened.model) is not None

    def rows_of(self, table: str) -> Tensor:
        """One of the tables (v, d)."""
        model = self.opened.model
        matrix: Tensor | None = getattr(model, self.stack).embedding.weight
        if table == UNEMBEDDING:
            matrix = unembedding(model)
        assert matrix is not None, "this model has no unembedding"
        return matrix


def space_code(
    opened: OpenModel, forward: ForwardPass, stack: str, axes: str, token: int, count: int
) -> None:
    choice = SpaceChoice(opened, forward, stack, axes)
    paths = token_paths(forward, stack, choice.places)
    if axes == UNEMBEDDING:
        paths = as_read(opened.model, paths)  # after the final norm
    components = principal_axes(paths.states.flatten(0, 1) if axes == STREAM else choice.table)
    places = components.places(paths.states)
    print(components.shares, paths.steps)
    print(places)  # by step and token, on three axes

    tables, this = [choice.rows_of(name) for name in choice.tables], torch.tensor([token])
    nearest = [nearest_tokens(table, table[this], count, this) for table in tables]
    for neighbours in nearest:
        print(neighbours.ids, neighbours.cosines)


def nearest_list(pairs: list[tuple[int, float]], labels: Mapping[int, str]) -> str:
    """Tokens with their cosine similarity, the nearest first."""
    return ", ".join(f"{labels[token]} {three(cosine)}" for token, cosine in pairs)


def vocabulary_labels(tokenizer: AnyTokenizer, ids: Sequence[int]) -> list[str]:
    """The labels of these tokens; an ID that the vocabulary does not use is shown as `<50300>`."""
    return [candidate_text(label) for label in labels_of(tokenizer, ids)]


LISTED, LISTED_OF_TWO, NEAREST_IN_SIGHT = 10, 5, 10
LIST_WIDTH = 240
OF = {EMBEDDING: "the token embedding", UNEMBEDDING: "the unembedding"}
TIED = "The unembedding is the token embedding (tied), so the nearest tokens are the same."


def choose_token(choice: SpaceChoice) -> int:
    """The place of the token whose neighbours are shown; first that of the closest neighbour."""
    tokens = choice.tokens
    words = [at for at in choice.places if not tokens[at].special] or [choice.places[-1]]
    near = nearest_in(choice, EMBEDDING, [tokens[at].id for at in words], 1)
    cosines = near.cosines[:, 0].tolist()
    return token("near", tokens, words[cosines.index(max(cosines))], width=LIST_WIDTH)


def draw_neighbours_of_one(choice: SpaceChoice, place: int) -> tuple[int, int]:
    """For each matrix a table of the tokens nearest to the chosen one, or to one that is typed.

    Returns the ID of that token, and how many are listed.
    """
    typed_id, why = one_token(choice.opened, text_field("near_text", placeholder="One token"))
    if why:
        st.text(why)
    chosen = choice.tokens[place].id if typed_id is None else typed_id
    (name,) = vocabulary_labels(choice.opened.tokenizer, [chosen])
    st.caption("Cosine similarity: 1 is the same direction, 0 has nothing in common.")
    count = LISTED if len(choice.tables) == 1 else LISTED_OF_TWO
    for table in choice.tables:
        st.markdown(f"**Nearest to {in_quotes(literal(name))} in {OF[table]}**")
        pairs = nearest_in(choice, table, [chosen], count).pairs(0)
        labels = vocabulary_labels(choice.opened.tokenizer, [neighbour for neighbour, _ in pairs])
        similarities = {"cosine similarity": [three(cosine) for _, cosine in pairs]}
        tables.table({"token": labels, **similarities}, right=similarities)
    if choice.has_unembedding and len(choice.tables) == 1:
        st.caption(TIED)
    return chosen, count


def draw_neighbours_of_all(choice: SpaceChoice) -> None:
    """For every token that is drawn a row with its nearest tokens in each matrix."""
    ids = list(dict.fromkeys(choice.tokens[place].id for place in choice.places))
    columns = {"token": vocabulary_labels(choice.opened.tokenizer, ids)}
    for table in choice.tables:
        neighbours = nearest_in(choice, table, ids, NEAREST)
        pairs = [neighbours.pairs(row) for row in range(len(ids))]
        near = [token for row in pairs for token, _ in row]
        labels = dict(zip(near, vocabulary_labels(choice.opened.tokenizer, near), strict=True))
        columns[f"nearest in {OF[table]}"] = [nearest_list(row, labels) for row in pairs]
    st.markdown("**Nearest to each of your tokens, with the cosine similarity**")
    tables.table(columns, most_rows=NEAREST_IN_SIGHT)


def nearest_in(choice: SpaceChoice, table: str, ids: Sequence[int], count: int) -> NearestTokens:
    """The other tokens in a table that are nearest to these, (ids, count)."""
    rows = choice.rows_of(table)

    def make() -> NearestTokens:
        return nearest_tokens(rows, rows[list(ids)], count, torch.tensor(ids))

    name = ("nearest tokens", choice.stack, table, tuple(ids), count)
    return cached(choice.opened, name, make)


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
    title = f"{context.called} · {choice.axes}, {choice.stack}"
    drawn = space.axes.shares[: 3 if in_3d else 2]
    chosen = choice.places.index(place) if place in choice.places else None
    steps = STEPS_DRAWN[choice.axes]
    tokens = map_of(space, steps, names, labels, chosen)
    x_and_y = axis_ranges(space.places[steps].flatten(0, 1), space.around)[:2]
    printed, _ = token_map(tokens, titles[:2], x_and_y, PRINTED_SIZE)
    left_out, kept = 0, f"keeps {percent(sum(drawn))} of the differences (their variance)"
    if in_3d:
        st.caption(f"This picture on {len(drawn)} axes {kept}.")
        plotly_chart(
            moving_scatter(
                moving_tokens(space, names, labels),
                [title.removesuffix(" of the variance") for title in titles],
                palette(st.context.theme.type),
            ),
            key="embedding_points",
            title=title,
            table=table_of(space, choice, names, labels),
            spec=printed,
        )
    else:
        st.caption(f"This flat picture {kept}; the thin lines lead to the true neighbours.")
        spec, left_out = token_map(tokens, titles[:2], x_and_y)
        chart(spec, key="embedding_map", title=title, height=WINDOW, printed=printed)
    st.caption(caption_of(space, choice, in_3d=in_3d, left_out=left_out))
    if place in choice.places:
        name = literal(named_at(choice.tokens, place))
        st.markdown(f"**Nearest to {name} at every step, in the {choice.table_name.lower()}**")
        tables.table(
            nearest_by_step(space, choice.places.index(place), labels), most_rows=STEPS_IN_SIGHT
        )


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
        for neighbour, cosine in space.nearest.pairs(step, place):
            near.setdefault(neighbour, []).append(f"{three(cosine)} to {name}")
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
    """What the axes are, and what is left out."""
    axes, size = space.axes, len(choice.table)
    count = 3 if in_3d else 2
    meaning = MEANING[choice.axes].format(("two", "three")[in_3d])
    text = (
        f"{meaning}, the same at every step. Every vector is drawn at length 1: what points the "
        "same way is near, but what looks near may differ in the other dimensions. Circles, and "
        "the ends of grey lines, are the nearest tokens by cosine similarity in all dimensions."
    )
    if left_out:
        text += f" {left_out} labels would overlap: point at a mark, or tap it, to read its own."
    some = f"{space.sampled:,} of {size:,} tokens, sampled with seed {SEED}"
    text += f" Grey is the vocabulary{f': {some}' if space.sampled < size else ''}."
    if axes.rows < axes.size:
        text += f" The components are computed from {axes.rows:,} of {axes.size:,} vectors."
    if len(choice.places) < len(choice.tokens):
        which = "first" if choice.stack == "encoder" else "last"
        count = len(choice.tokens)
        text += f" The {which} {MOST_MOVING_TOKENS} of your {count:,} tokens are drawn."
    return text
