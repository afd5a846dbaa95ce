"""What a query asks for and a key offers: the strongest directions of one score.

With frozen norms, and rotated for their two positions, W_Q and W_K make a matrix between the
residual streams of the query and of the key. In the basis of its singular vectors a score is a sum
over directions (and what biases add): the query's part of one direction × the key's part × the
singular value. A direction is named by the tokens of the text that lie furthest along it in the
streams that this attention reads: the vocabulary's embeddings say little about a deep layer.
Shapes: w width of one head, d width of the model.
Source: The Singular Value Decompositions of Transformer Weight Matrices are Highly Interpretable
(Millidge and Black 2022).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from explorer.analysis.score_sources import KEY, QUERY, ScoreSide
from explorer.inference.forward_pass import ForwardPass

TOKENS = 3


@dataclass(frozen=True)
class PairDirection:
    """A direction, its part of the score, and the positions that lie furthest along it."""

    value: float
    asks: tuple[int, ...]
    offers: tuple[int, ...]


def pair_directions(
    forward: ForwardPass, part: str, layer: int, head: int, query: int, key: int, most: int = 6
) -> list[PairDirection]:
    """The directions with the largest parts of a score. Costs w² × d + tokens × d × `most`."""
    with torch.no_grad():
        values, *axes = score_by_direction(forward, part, layer, head, query, key)
        order = values.abs().argsort(descending=True)[:most]
        furthest = []
        for name, of_side in zip((QUERY, KEY), axes, strict=True):
            tokens = forward.rows(part) if name == QUERY else forward.columns(part)
            streams = _side(forward, part, layer, head, name, range(len(tokens))).stream_read()
            along = nn.functional.normalize(streams, dim=-1) @ of_side[:, order]
            count = min(TOKENS, len(tokens))
            furthest.append(along.topk(count, dim=0).indices.mT.tolist())
    return [
        PairDirection(value, tuple(asks), tuple(offers))
        for value, asks, offers in zip(values[order].tolist(), *furthest, strict=True)
    ]


def _side(
    forward: ForwardPass, part: str, layer: int, head: int, name: str, places: Sequence[int]
) -> ScoreSide:
    """The queries or keys at these places, all with the same share."""
    at, nothing = torch.tensor([*places]), torch.zeros(forward.config.head_width)
    return ScoreSide(forward, part, layer, head, name, places[0], at, torch.ones(len(at)), nothing)


def score_by_direction(
    forward: ForwardPass, part: str, layer: int, head: int, query: int, key: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The part of the score of every direction (w,), and the directions of both sides, (d, w).

    Query and key lie on the positive half of their axes where the part is positive.
    """
    streams, triangles, axes = [], [], []
    for name, place in ((QUERY, query), (KEY, key)):
        side = _side(forward, part, layer, head, name, [place])
        rows = side.reading.matrix.mT  # (d, w)
        if side.rotate is not None:
            rows = side.rotate(rows[:, None, None])[:, 0, 0]
        basis, triangle = torch.linalg.qr(rows)
        streams.append(side.reading.scale[0] * side.stream_read()[0])
        triangles.append(triangle)
        axes.append(basis)
    left, sizes, right = torch.linalg.svd(triangles[0] @ triangles[1].mT)
    query_axes, key_axes = axes[0] @ left, axes[1] @ right.mT
    along_query, along_key = streams[0] @ query_axes, streams[1] @ key_axes
    turned = torch.where(along_query < 0, -1.0, 1.0)
    return (
        forward.config.scale * sizes * along_query * along_key,
        query_axes * turned,
        key_axes * turned,
    )
