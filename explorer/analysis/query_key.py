"""One query and one key: their product number by number, and how it becomes a weight.

Shapes: d width of one head, n keys. Nothing here makes a number of its own: the score,
the bias and the weight are the recorded pass's, and what is added up again from q and k
is compared with them (`Pair.difference`).
Source: Attention Is All You Need, section 3.2.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from models.attention import attention_scores
from models.positional import Positions, RotaryPositions

SHORTEST_REACH = 64
"""Distances are shown at least this far, where the model has positions for them."""
MOST_DISTANCES = 512
"""A longer reach is drawn in steps; the pair's own distance is always among them."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Why one query looks at one key as much as it does.

    `q`, `k` and `products` are (d): the query and the key as they met, after any norm and
    rotation, and q × k number by number. `score` is their sum times `scale`, bent where
    there is a `cap`; `biased` is the score and the `bias`, what the softmax is given.
    `weight` is e^(biased − largest) / total, `largest` and `total` being over the `seen`
    keys that the mask lets the query look at; a key it forbids has the weight 0.
    `row_scores`, `row_weights` and `mask` are (n), the same of every key for this query.
    `difference` is the largest of this whole row between the weights of the pass and the
    same made again from q and k in float64, by the row's largest weight. `sharing` are the
    heads that have this key in common, more than one where keys are grouped.
    """

    query: int
    key: int
    q: Tensor
    k: Tensor
    scale: float
    cap: float | None
    score: float
    bias: float | None
    biased: float
    weight: float
    row_scores: Tensor
    row_weights: Tensor
    mask: Tensor
    largest: float
    total: float
    difference: float
    sharing: range

    @property
    def allowed(self) -> bool:
        """Whether the query may look at the key."""
        return bool(self.mask[self.key])

    @property
    def seen(self) -> int:
        """How many keys the query may look at."""
        return int(self.mask.sum())

    @property
    def products(self) -> Tensor:
        return self.q * self.k

    @property
    def dot(self) -> float:
        """q·k, the sum of the products."""
        return float(self.products.sum())

    @property
    def positive(self) -> float:
        """The sum of the products above zero."""
        return float(self.products.clamp(min=0).sum())

    def strongest_keys(self) -> list[int]:
        """The keys that the query may look at, the largest weight first."""
        order = self.row_weights.nan_to_num(-1.0).argsort(descending=True, stable=True)
        return [int(place) for place in order if self.mask[place]]

    def by_size(self) -> list[int]:
        """The dimensions, the largest product (of either sign) first."""
        return [int(place) for place in self.products.abs().argsort(descending=True, stable=True)]


def pair(forward: ForwardPass, part: str, layer: int, head: int, query: int, key: int) -> Pair:
    """The way from one query and one key to their weight. Cost grows with n² × d, of one head."""
    at = site(part, layer)
    q, keys, sharing = _query_and_keys(forward, at, head, query)
    config = forward.config
    bias = forward.bias(part, layer, head)
    added = None if bias is None else bias[query].detach().double()
    mask = forward.mask(part, layer)[query]
    scores = forward.scores(part, layer, head)[query].double()
    weights = forward.weights(part, layer, head)[query].double()
    scored = scores if added is None else scores + added
    seen = scored[mask]
    largest = float(seen.max()) if len(seen) else 0.0
    again = attention_scores(
        q[None, None, None], keys[None, None], config.scale, config.attention_cap
    )[0, 0, 0]
    again = again if added is None else again + added
    return Pair(
        query=query,
        key=key,
        q=q,
        k=keys[key],
        scale=config.scale,
        cap=config.attention_cap,
        score=float(scores[key]),
        bias=None if added is None else float(added[key]),
        biased=float(scored[key]),
        weight=float(weights[key]),
        row_scores=scored,
        row_weights=weights,
        mask=mask,
        largest=largest,
        total=float((seen - largest).exp().sum()),
        difference=_difference(again, mask, weights),
        sharing=sharing,
    )


def strongest(forward: ForwardPass, part: str, layer: int, head: int, query: int) -> int:
    """The key that a query looks at most; the first one where it looks at none."""
    weights = forward.weights(part, layer, head)[query].nan_to_num(-1.0)
    return int(weights.argmax())


@dataclass(frozen=True)
class ByDistance:
    """What positions make of a pair that would stand further apart or nearer.

    `what` is "score" where queries and keys are turned (the whole score changes), and
    "bias" where a number is added to it. A distance is the query's position minus the
    key's; `actual` is the pair's own, `step` is above 1 where distances are left out.
    """

    what: str
    points: tuple[tuple[int, float], ...]
    actual: int
    step: int


def by_distance(
    forward: ForwardPass, part: str, layer: int, head: int, query: int, key: int
) -> ByDistance | None:
    """The pair at every distance, by the model's own rotation or bias.

    None where a position acts on neither: it was added to the embedding, or there is
    none, and cross-attention knows no distance. Cost grows with distances × d.
    """
    if not part.endswith("self_attn"):
        return None
    stack = part.split(".")[0]
    positions: Positions = getattr(forward.trace.model, stack).positions
    places = forward.trace[f"{stack}.positions"]
    places = places[forward.row] if places.dim() == 2 else places
    here = int(places[query])
    actual = here - int(places[key])
    distances, step = _distances(forward, part, actual)
    moved = here - distances  # where the key would stand
    if isinstance(positions, RotaryPositions):
        q, keys, _ = _query_and_keys(forward, site(part, layer), head, query)
        values = _turned(positions, q, keys[key], moved - int(places[key]), forward)
        what = "score"
    else:
        at = torch.tensor([here])
        bias = positions.bias(at, moved, slice(head, head + 1))
        if bias is None:
            return None
        values, what = bias.detach()[0, 0, 0].double(), "bias"
    points = zip(distances.tolist(), values.tolist(), strict=True)
    return ByDistance(what, tuple(points), actual, step)


def _query_and_keys(
    forward: ForwardPass, at: str, head: int, query: int
) -> tuple[Tensor, Tensor, range]:
    """One query (d), the keys of its head (n, d) in float64, and the heads that share them."""
    q, k = forward.trace[f"{at}.q"], forward.trace[f"{at}.k"]
    size = q.shape[1] // k.shape[1]
    group = head // size
    keys = k[forward.row, group].detach().double()
    sharing = range(group * size, (group + 1) * size)
    return q[forward.row, head, query].detach().double(), keys, sharing


def _difference(scores: Tensor, mask: Tensor, weights: Tensor) -> float:
    """Between the softmax of these scores (n) under the mask and the weights of the pass.

    By the largest weight of the row, so a row that sees nothing differs by nothing.
    """
    again = torch.zeros_like(weights)
    if mask.any():
        again[mask] = scores[mask].softmax(-1)
    if not len(weights):
        return 0.0
    return float((again - weights).abs().max() / weights.max().clamp(min=1e-30))


def _distances(forward: ForwardPass, part: str, actual: int) -> tuple[Tensor, int]:
    """As far as the text goes, both ways unless the stack looks back only."""
    length = len(forward.columns(part))
    reach = min(max(length, SHORTEST_REACH), max(forward.config.max_len, length)) - 1
    reach = max(reach, abs(actual))
    ways = 1 if part == "decoder.self_attn" and actual >= 0 else 2
    step = math.ceil((ways * reach + 1) / MOST_DISTANCES)
    ahead = 0 if ways == 1 else reach // step * step
    distances = torch.arange(-ahead, reach + 1, step)
    return torch.cat((distances, torch.tensor([actual]))).unique(), step


def _turned(
    positions: RotaryPositions, q: Tensor, k: Tensor, by: Tensor, forward: ForwardPass
) -> Tensor:
    """The scores of the key turned on by so many positions, (distances).

    A rotation that also stretches (YaRN) has stretched this key already, once.
    """
    stretch = 1.0 if positions.scaling is None else positions.scaling.attention_factor
    turned = positions.rotation(by)(k.expand(1, 1, len(by), -1))[0, 0].clone()
    turned[:, : positions.d_head] /= stretch
    config = forward.config
    scores = attention_scores(
        q[None, None, None], turned[None, None], config.scale, config.attention_cap
    )
    return scores[0, 0, 0]
