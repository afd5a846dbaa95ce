"""The nearest tokens by cosine similarity: of one token, and of every token of the text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
import torch
from torch import Tensor

from explorer.analysis.embedding_space import (
    EMBEDDING,
    MOST_MOVING_TOKENS,
    NEAREST,
    STREAM,
    UNEMBEDDING,
    NearestTokens,
    as_read,
    is_tied,
    nearest_tokens,
    principal_axes,
    token_paths,
    unembedding,
)
from explorer.app.controls import text_field, token
from explorer.catalog.opened_model import OpenModel
from explorer.inference.answers import one_token
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.text import AnyTokenizer, Token
from explorer.text.number_format import three
from explorer.text.token_labels import candidate_text, labels_of
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


@dataclass(frozen=True)
class ChosenToken:
    """The place of a token of the text; the token whose `count` nearest are listed."""

    place: int
    id: int
    count: int


def choose_token(choice: SpaceChoice) -> int:
    """The place of the token whose neighbours are shown."""
    tokens = choice.tokens
    words = [place for place, word in enumerate(tokens) if not word.special]
    return token("near", tokens, words[-1] if words else len(tokens) - 1, width=LIST_WIDTH)


def draw_neighbours_of_one(choice: SpaceChoice, place: int) -> ChosenToken:
    """For each matrix a table of the tokens nearest to the chosen one, or to one that is typed."""
    typed_id, why = one_token(choice.opened, text_field("near_text", placeholder="One token"))
    if why:
        st.text(why)
    chosen = choice.tokens[place].id if typed_id is None else typed_id
    (name,) = vocabulary_labels(choice.opened.tokenizer, [chosen])
    count = LISTED if len(choice.tables) == 1 else LISTED_OF_TWO
    for table in choice.tables:
        st.markdown(f"**{in_quotes(literal(name))} in {OF[table]}**")
        pairs = nearest_in(choice, table, [chosen], count).pairs(0)
        labels = vocabulary_labels(choice.opened.tokenizer, [neighbour for neighbour, _ in pairs])
        similarities = {"cosine similarity": [three(cosine) for _, cosine in pairs]}
        tables.table({"token": labels, **similarities}, right=similarities)
    if choice.has_unembedding and len(choice.tables) == 1:
        st.caption(TIED)
    return ChosenToken(place, chosen, count)


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
