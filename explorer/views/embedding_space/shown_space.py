"""What the page “Embedding space” shows of a model: which stack, which tokens, which rows."""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.embedding_space import (
    EMBEDDING,
    MOST_MOVING_TOKENS,
    STREAM,
    UNEMBEDDING,
    as_read,
    is_tied,
    token_paths,
    unembedding,
)
from explorer.analysis.nearest_tokens import nearest_tokens
from explorer.analysis.principal_components import principal_axes
from explorer.catalog.open_model import OpenModel
from explorer.inference.forward_pass import ForwardPass
from explorer.text import Token


@dataclass(frozen=True, eq=False)
class ShownSpace:
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
    shown = ShownSpace(opened, forward, stack, axes)
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
