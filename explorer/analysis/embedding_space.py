"""A text's tokens, the vocabulary around them and their ways through the layers, on three axes."""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.nearest_tokens import Nearest
from explorer.analysis.principal_components import PrincipalAxes, sample_rows
from explorer.analysis.token_paths import TokenPaths

EMBEDDING, STREAM, UNEMBEDDING = "Token embedding", "Residual stream", "Unembedding"
"""What the axes are the principal components of: rows for every token, or the text's vectors."""
MOST_SAMPLED = 1_000
"""Tokens of the vocabulary that are drawn besides; a whole one would hide everything."""
MOST_MOVING_TOKENS = 24
NEAREST = 3


@dataclass(frozen=True, eq=False)
class EmbeddingSpace:
    """Where everything is on the axes: tokens at every step, some of the vocabulary.

    `places` (steps, tokens, 3); `shares[step]` is the part of the tokens' variance that the axes
    hold. `nearest` has the nearest tokens (steps, tokens, k). `vocabulary` are the IDs that have
    a place in `around` (n, 3): first the `sampled`, then the nearest ones that are not sampled.
    """

    axes: PrincipalAxes
    paths: TokenPaths
    places: Tensor
    shares: tuple[float | None, ...]
    nearest: Nearest
    vocabulary: tuple[int, ...]
    around: Tensor
    sampled: int

    @property
    def nbytes(self) -> int:
        """Bytes of what it holds, the axes apart."""
        drawn = self.places.nbytes + self.around.nbytes + self.nearest.nbytes
        return drawn + self.paths.states.nbytes + 40 * len(self.vocabulary)


def embedding_space(
    table: Tensor, axes: PrincipalAxes, paths: TokenPaths, nearest: Nearest
) -> EmbeddingSpace:
    """The vectors of `paths` and rows of `table` (v, d) on `axes`; costs d for each number."""
    sample = sample_rows(len(table), MOST_SAMPLED).tolist()
    found = nearest.ids[nearest.cosines > -torch.inf].unique().tolist()
    vocabulary = tuple(dict.fromkeys([*sample, *found]))
    return EmbeddingSpace(
        axes=axes,
        paths=paths,
        places=axes.places(paths.states),
        shares=tuple(axes.share_of(states) for states in paths.states),
        nearest=nearest,
        vocabulary=vocabulary,
        around=axes.places(table.detach()[list(vocabulary)].float()),
        sampled=len(sample),
    )
