"""A text's tokens, their nearest tokens and their paths through the layers, on three axes.

The axes are principal components of vectors of length one: the directions in which they differ
most. At length one the distance of two vectors follows from their cosine similarity alone:
|a − b|² = 2 − 2 cos(a, b).
Sources: interpreting GPT: the logit lens (nostalgebraist 2020), for what the output head reads; On
Lines and Planes of Closest Fit (Pearson 1901).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from explorer.inference.forward_pass import ForwardPass
from explorer.system.cooperative import interruptible
from models import Transformer
from models.output_heads import LanguageModelHead

WORK = 60_000_000_000
"""The most multiplications of a covariance, n · d² of n rows: about two seconds of one core."""
DOUBLE = 4_000_000_000
"""The most multiplications in float64; larger covariances use float32."""
FEW_ROWS, WIDE = 1_024, 1_024
"""Of vectors wider than `WIDE`, only `FEW_ROWS` rows are used, and the products of rows."""
CHUNK = 16_384
"""Rows of a table in one step, so that a table in half precision is widened in parts."""
SEED = 0
AXES = 3


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The mean (d), the three directions of most variance (d, 3), and their shares of it.

    They are of `rows` vectors out of `size`.
    """

    mean: Tensor
    directions: Tensor
    shares: tuple[float, float, float]
    rows: int
    size: int

    def places(self, vectors: Tensor) -> Tensor:
        """The places of vectors (…, d), at length one, on the three axes, (…, 3) in float64."""
        return (at_length_one(vectors.double()) - self.mean) @ self.directions

    def share_of(self, vectors: Tensor) -> float | None:
        """The share of the variance of these vectors (n, d) that the three axes hold.

        The variance is around their own mean; None where it is zero.
        """
        centred = at_length_one(vectors.double())
        centred = centred - centred.mean(0)
        total = float(centred.square().sum())
        if not total > 0:  # also of NaN
            return None
        return float((centred @ self.directions).square().sum()) / total


def at_length_one(vectors: Tensor) -> Tensor:
    """Vectors (…, d) at length one; a zero vector stays zero."""
    return nn.functional.normalize(vectors, dim=-1, eps=torch.finfo(vectors.dtype).tiny)


def rows_measured(table: Tensor) -> Tensor:
    """The rows whose components are computed: all, or a fixed sample that is fast enough."""
    size, width = table.shape
    most = WORK // width**2 if width <= WIDE else FEW_ROWS
    return sample_rows(size, most)


def sample_rows(size: int, most: int) -> Tensor:
    """At most `most` whole numbers below `size`, in order; the same every time."""
    if size <= most:
        return torch.arange(size)
    return torch.randperm(size, generator=torch.Generator().manual_seed(SEED))[:most].sort().values


def principal_axes(table: Tensor) -> PrincipalAxes:
    """The axes of the rows of a table (v, d), by the eigenvectors of their covariance.

    The largest entry of each direction is positive, so that its sign is the same every time.
    n rows cost n · d² and d³, or n² · d and n³ where there are fewer rows than numbers in each.
    LinAlgError where a number is not finite.
    """
    measured = rows_measured(table)
    mean = torch.zeros(table.shape[1], dtype=torch.float64)
    for rows in _rows_at_length_one(table, measured):
        mean += rows.sum(0, dtype=torch.float64) / len(measured)
    if len(measured) < len(mean):
        (rows,) = _rows_at_length_one(table, measured)
        centred = rows.double() - mean
        values, left = torch.linalg.eigh(centred @ centred.mT)
        vectors = nn.functional.normalize(centred.mT @ left, dim=0)
    else:
        scatter = torch.zeros(len(mean), len(mean), dtype=torch.float64)
        for rows in _rows_at_length_one(table, measured):
            centred = rows - mean.to(rows.dtype)
            scatter += (centred.mT @ centred).double()
        values, vectors = torch.linalg.eigh(scatter)
    values, directions = values.clamp(min=0).flip(0), vectors.flip(1)[:, :AXES]
    largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
    directions = directions * largest.sign()
    missing = AXES - directions.shape[1]
    if missing > 0:
        directions = nn.functional.pad(directions, (0, missing))
        values = nn.functional.pad(values, (0, missing))
    total = float(values.sum()) or 1.0
    first, second, third = (float(value) / total for value in values[:AXES])
    return PrincipalAxes(mean, directions, (first, second, third), len(measured), len(table))


def _rows_at_length_one(table: Tensor, measured: Tensor) -> Iterator[Tensor]:
    """The measured rows part by part, in float64 where that is fast."""
    precise = len(measured) * table.shape[1] ** 2 <= DOUBLE
    for some in interruptible(measured.split(CHUNK)):
        rows = table.detach()[some]
        yield at_length_one(rows.double() if precise else rows.float())


@dataclass(frozen=True, eq=False)
class TokenPaths:
    """`states` (steps, tokens, d): the token embedding, then the residual stream.

    `steps` are their names: the embedding, the input of the first layer where positions or
    segments change it, and the output of every layer. `ids` are the tokens.
    """

    steps: tuple[str, ...]
    ids: tuple[int, ...]
    states: Tensor


def token_paths(forward: ForwardPass, stack: str, places: Sequence[int]) -> TokenPaths:
    """The paths of the tokens at these places, from the recorded pass, without computing any."""
    tokens = forward.source if stack == "encoder" else forward.target
    ids = tuple(tokens[place].id for place in places)
    part = getattr(forward.trace.model, stack)
    with torch.no_grad():
        embedded = part.embedding.weight[list(ids)] * part.embedding_scale
    steps, states = ["embedding"], [embedded]
    entering = forward.trace[f"{stack}.0.resid_pre"][forward.row, list(places)]
    if not torch.equal(entering, embedded):
        steps.append("into layer 0")
        states.append(entering)
    for layer in interruptible(range(len(part.blocks))):
        steps.append(f"after layer {layer}")
        states.append(forward.trace[f"{stack}.{layer}.resid_post"][forward.row, list(places)])
    return TokenPaths(tuple(steps), ids, torch.stack([state.float() for state in states]))


def unembedding(model: Transformer) -> Tensor | None:
    """The output head's matrix (v, d), a row for every token; None without a language model's."""
    if not isinstance(model.head, LanguageModelHead):
        return None
    own = model.head.weight
    return model.last_stack.embedding.weight if own is None else own


def is_tied(model: Transformer) -> bool:
    return isinstance(model.head, LanguageModelHead) and model.head.weight is None


def as_read(model: Transformer, paths: TokenPaths) -> TokenPaths:
    """The paths after the final norm, as the unembedding reads them.

    A masked language model transforms them too. Scale, bias and soft cap of the logits come
    after the product.
    """
    assert isinstance(model.head, LanguageModelHead)
    with torch.no_grad():
        return replace(paths, states=model.head.transform(model.last_stack.norm(paths.states)))


@dataclass(frozen=True, eq=False)
class NearestTokens:
    """The nearest tokens of each vector, the nearest first: IDs (…, k) and cosines (…, k).

    The cosine is −∞ where there is no other token, or a vector is zero.
    """

    ids: Tensor
    cosines: Tensor

    def pairs(self, *place: int) -> list[tuple[int, float]]:
        """The nearest tokens of one vector: token IDs and cosines."""
        ids, cosines = self.ids[place].tolist(), self.cosines[place].tolist()
        return [(i, c) for i, c in zip(ids, cosines, strict=True) if c > -torch.inf]


def nearest_tokens(
    table: Tensor, vectors: Tensor, count: int, but: Tensor | None = None
) -> NearestTokens:
    """The nearest rows of a table (v, d) to vectors (n, d), without the token `but[n]` of each.

    Costs n · v · d: for one vector about as long as reading the table once.
    """
    *_, nearest = nearest_by_part(table, vectors, count, but)
    return nearest


def nearest_by_part(
    table: Tensor, vectors: Tensor, count: int, but: Tensor | None = None
) -> Iterator[NearestTokens]:
    """The nearest among the rows so far, part by part of the table: `parts_of(table)` times."""
    units = at_length_one(vectors.detach().double()).float()
    aimless = ~units.any(-1)
    count = min(count, len(table))
    best = torch.full((len(units), count), -torch.inf)
    ids = torch.zeros(len(units), count, dtype=torch.long)
    for start in interruptible(range(0, len(table), CHUNK)):
        rows = table[start : start + CHUNK].detach().float()
        cosines = (units @ rows.mT) / rows.norm(dim=-1)
        cosines = cosines.nan_to_num(nan=-torch.inf)  # of a zero row
        cosines[aimless] = -torch.inf
        if but is not None:
            own = but - start
            here = (own >= 0) & (own < len(rows))
            cosines[here.nonzero()[:, 0], own[here]] = -torch.inf
        top = cosines.topk(min(count, len(rows)), 1)
        both = torch.cat([best, top.values], 1)
        merged = both.topk(count, 1)
        best = merged.values
        ids = torch.cat([ids, top.indices + start], 1).gather(1, merged.indices)
        yield NearestTokens(ids, best)


def parts_of(table: Tensor) -> int:
    return -(-len(table) // CHUNK)


EMBEDDING, STREAM, UNEMBEDDING = "Token embedding", "Residual stream", "Unembedding"
"""The vectors whose principal components are the axes."""
MOST_SAMPLED = 1_000
"""The most sampled tokens of the vocabulary: a whole one would hide everything."""
MOST_MOVING_TOKENS = 24
NEAREST = 3


@dataclass(frozen=True, eq=False)
class EmbeddingSpace:
    """The places of the tokens at every step, and of some of the vocabulary, on the axes.

    `places` are (steps, tokens, 3); `shares[step]` is the part of the tokens' variance that the
    axes hold. `nearest` has the nearest tokens (steps, tokens, k). `around` (n, 3) are the places
    of the IDs in `vocabulary`: first the `sampled`, then the nearest ones that are not sampled.
    """

    axes: PrincipalAxes
    paths: TokenPaths
    places: Tensor
    shares: tuple[float | None, ...]
    nearest: NearestTokens
    vocabulary: tuple[int, ...]
    around: Tensor
    sampled: int


def embedding_space(
    table: Tensor, axes: PrincipalAxes, paths: TokenPaths, nearest: NearestTokens
) -> EmbeddingSpace:
    """The vectors of `paths` and rows of `table` (v, d) on `axes`; costs d for each number."""
    sample = sample_rows(len(table), MOST_SAMPLED).tolist()
    near = nearest.ids[nearest.cosines > -torch.inf].unique().tolist()
    vocabulary = tuple(dict.fromkeys([*sample, *near]))
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
