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
    as_read,
    is_tied,
    token_paths,
    unembedding,
)
from explorer.analysis.nearest_tokens import NearestTokens, nearest_tokens
from explorer.analysis.principal_components import principal_axes
from explorer.app.controls import text_field, token
from explorer.catalog.opened_model import OpenModel
from explorer.inference.answers import one_token
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import kept
from explorer.text import AnyTokenizer, Token
from explorer.text.number_format import three
from explorer.text.token_labels import candidate_text, labels_of
from explorer.text.visible_text import literal
from explorer.views.shared import tables


@dataclass(frozen=True, eq=False)
class StackSpace:
    """What is chosen: the stack, and what the axes are the principal components of."""

    opened: OpenModel
    forward: ForwardPass
    stack: str
    axes: str

    @property
    def tokens(self) -> tuple[Token, ...]:
        """All that the stack reads."""
        return self.forward.source if self.stack == "encoder" else self.forward.target

    @property
    def drawn(self) -> range:
        """Which of them are drawn: the first of an encoder's, the last of a decoder's."""
        count = len(self.tokens)
        most = min(count, MOST_MOVING_TOKENS)
        return range(most) if self.stack == "encoder" else range(count - most, count)

    @property
    def table(self) -> Tensor:
        """The rows (v, d) that stand for the vocabulary on these axes."""
        return self.rows_of(self.table_name)

    @property
    def table_name(self) -> str:
        return UNEMBEDDING if self.axes == UNEMBEDDING else EMBEDDING

    @property
    def tables(self) -> tuple[str, ...]:
        """The token embedding of the stack, and the unembedding where that is another matrix."""
        is_other = self.has_unembedding and not is_tied(self.opened.model)
        return (EMBEDDING, UNEMBEDDING) if is_other else (EMBEDDING,)

    @property
    def has_unembedding(self) -> bool:
        """Whether the output head scores tokens by what this stack ends in."""
        is_last = self.stack == self.opened.config.stacks[-1]
        return is_last and unembedding(self.opened.model) is not None

    def rows_of(self, table: str) -> Tensor:
        """One of the tables (v, d)."""
        model = self.opened.model
        found: Tensor | None = getattr(model, self.stack).embedding.weight
        if table == UNEMBEDDING:
            found = unembedding(model)
        assert found is not None, "only a model with an unembedding is asked for it"
        return found


def space_code(
    opened: OpenModel, forward: ForwardPass, stack: str, axes: str, token: int, count: int
) -> None:
    shown = StackSpace(opened, forward, stack, axes)
    paths = token_paths(forward, stack, shown.drawn)
    if axes == UNEMBEDDING:
        paths = as_read(opened.model, paths)  # after the final norm
    found = principal_axes(paths.states.flatten(0, 1) if axes == STREAM else shown.table)
    places = found.places(paths.states)
    print(found.shares, paths.steps)
    print(places)  # by step and token, on three axes

    tables, this = [shown.rows_of(name) for name in shown.tables], torch.tensor([token])
    nearest = [nearest_tokens(table, table[this], count, this) for table in tables]
    for each in nearest:
        print(each.ids, each.cosines)


def listed(pairs: list[tuple[int, float]], labels: Mapping[int, str]) -> str:
    """Tokens with their cosine similarity, the nearest first."""
    return ", ".join(f"{labels[token]} {three(cosine)}" for token, cosine in pairs)


def vocabulary_labels(tokenizer: AnyTokenizer, ids: Sequence[int]) -> list[str]:
    """How to show these tokens; an ID that the vocabulary leaves free is shown as `<50300>`."""
    return [candidate_text(label) for label in labels_of(tokenizer, ids)]


LISTED, LISTED_OF_TWO, NEAREST_IN_SIGHT = 10, 5, 10
OF = {EMBEDDING: "the token embedding", UNEMBEDDING: "the unembedding"}
TIED = "The unembedding is the token embedding (tied), so the nearest tokens are the same."


@dataclass(frozen=True)
class ChosenToken:
    """The place of a token of the text, and the token whose nearest are listed, so many."""

    place: int
    id: int
    listed: int


def draw_neighbours_of_one(shown: StackSpace) -> ChosenToken:
    """A table for each matrix of the nearest tokens to the one that is chosen."""
    tokens = shown.tokens
    words = [place for place, each in enumerate(tokens) if not each.special]
    place = token("near", tokens, words[-1] if words else len(tokens) - 1)
    typed = text_field("near_text", placeholder="One token")
    found, why = one_token(shown.opened, typed)
    if why:
        st.text(why)
    chosen = tokens[place].id if found is None else found
    (name,) = vocabulary_labels(shown.opened.tokenizer, [chosen])
    count = LISTED if len(shown.tables) == 1 else LISTED_OF_TWO
    for table in shown.tables:
        st.markdown(f"**“{literal(name)}” in {OF[table]}**")
        pairs = nearest_in(shown, table, [chosen], count).pairs(0)
        labels = vocabulary_labels(shown.opened.tokenizer, [each for each, _ in pairs])
        similarities = {"cosine similarity": [three(cosine) for _, cosine in pairs]}
        tables.table({"token": labels, **similarities}, right=similarities)
    if shown.has_unembedding and len(shown.tables) == 1:
        st.caption(TIED)
    return ChosenToken(place, chosen, count)


def draw_neighbours_of_all(shown: StackSpace) -> None:
    """A row for every token that is drawn: its nearest in each matrix."""
    ids = list(dict.fromkeys(shown.tokens[place].id for place in shown.drawn))
    columns = {"token": vocabulary_labels(shown.opened.tokenizer, ids)}
    for table in shown.tables:
        found = nearest_in(shown, table, ids, NEAREST)
        pairs = [found.pairs(row) for row in range(len(ids))]
        near = [token for row in pairs for token, _ in row]
        labels = dict(zip(near, vocabulary_labels(shown.opened.tokenizer, near), strict=True))
        columns[f"nearest in {OF[table]}"] = [listed(row, labels) for row in pairs]
    st.markdown("**Nearest to each of your tokens, with the cosine similarity**")
    tables.table(columns, most_rows=NEAREST_IN_SIGHT)


def nearest_in(shown: StackSpace, table: str, ids: Sequence[int], count: int) -> NearestTokens:
    """The nearest other tokens to these in a table, (ids, count)."""
    rows = shown.rows_of(table)

    def make() -> NearestTokens:
        return nearest_tokens(rows, rows[list(ids)], count, torch.tensor(ids))

    name = ("nearest tokens", shown.stack, table, tuple(ids), count)
    return kept(shown.opened, name, make)
