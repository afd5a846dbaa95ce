"""One head from its queries and keys to its output, and one pair from q and k to its weight.

Shapes: q queries, k or n keys, d width of one head. Scores, bias, mask and weights are those of the
recorded pass; `difference` compares the weights with those recomputed from q and k.
Source: Attention Is All You Need, equation 1.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.residual_writes import positions_of
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from models import TransformerConfig
from models.attention import attention_scores, attention_weights
from models.positional import Positions
from models.rotary import RotaryPositions


@dataclass(frozen=True, eq=False)
class HeadStages:
    """softmax(Q Kᵀ × scale + M) V of one head, stage by stage.

    `q` (q, d), `k` and `v` (k, d) are after any norm and rotation; `dots` is Q Kᵀ (q, k), `scaled`
    is Q Kᵀ times `scale`, bounded by the `cap` if there is one, `added` is M (the bias, −∞ for
    masked keys), `logits` are their sum and `weights` its softmax over all keys; `out` (q, d) is
    the output of the head: the weights times the values of all keys. `rows` and `columns` are the
    queries and keys of this window. `difference` is the largest between the weights of the pass and
    those recomputed in float64 from Q and K, relative to the largest weight of the row.
    """

    rows: range
    columns: range
    q: Tensor
    k: Tensor
    v: Tensor
    dots: Tensor
    scaled: Tensor
    added: Tensor
    logits: Tensor
    weights: Tensor
    out: Tensor
    allowed: Tensor
    scale: float
    cap: float | None
    has_bias: bool
    scales_rows: bool
    difference: float


def head_stages_of(
    forward: ForwardPass, part: str, layer: int, head: int, rows: range, columns: range
) -> HeadStages:
    """The stages over these queries and keys. Cost grows with all queries × all keys × d."""
    at = site(part, layer)
    config, trace = forward.config, forward.trace
    down, across = slice(rows.start, rows.stop), slice(columns.start, columns.stop)
    k, v = trace[f"{at}.k"][forward.row], trace[f"{at}.v"][forward.row]
    group = config.kv_head(head)
    q, k, v = trace[f"{at}.q"][forward.row, head, down], k[group], v[group]
    bias = forward.bias(part, layer, head)
    mask = forward.mask(part, layer)[down]
    weights = forward.weights(part, layer, head)[down]
    scaled = forward.scores(part, layer, head)[down, across]
    some = None if bias is None else bias[down]
    scales = row_scale(forward, part, layer, head)
    scales = None if scales is None else scales[down]
    added = torch.zeros_like(scaled) if some is None else some[:, across].to(scaled.dtype)
    allowed = mask[:, across]
    masked = -torch.inf
    return HeadStages(
        rows=rows,
        columns=columns,
        q=q,
        k=k[across],
        v=v[across],
        dots=attention_scores(q[None, None], k[None, None, across], 1.0)[0, 0],
        scaled=scaled,
        added=added.masked_fill(~allowed, masked),
        logits=(scaled + added).masked_fill(~allowed, masked),
        weights=weights[:, across],
        out=weights @ v,
        allowed=allowed,
        scale=config.scale,
        cap=config.attention_cap,
        has_bias=bias is not None,
        scales_rows=scales is not None,
        difference=weights_difference(q, k, some, mask, weights, config, scales),
    )


def row_scale(forward: ForwardPass, part: str, layer: int, head: int) -> Tensor | None:
    """The factor (q, 1) of each row of a head, in models with a sink logit or gated attention."""
    scales = forward.trace.values.get(f"{site(part, layer)}.row_scale")
    return None if scales is None else scales[forward.row, head].double()


def weights_difference(
    q: Tensor,
    k: Tensor,
    bias: Tensor | None,
    mask: Tensor,
    weights: Tensor,
    config: TransformerConfig,
    rows: Tensor | None = None,
) -> float:
    """The error of the weights (q, all k) against float64, relative to each row's largest."""
    q, k = q.double()[None, None], k.double()[None, None]
    scores = attention_scores(q, k, config.scale, config.attention_cap)
    bias = None if bias is None else bias.double()
    recomputed = attention_weights(scores, mask[None, None], bias)[0, 0]
    recomputed = recomputed if rows is None else recomputed * rows
    largest = weights.amax(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
    return float(((recomputed - weights) / largest).abs().max()) if weights.numel() else 0.0


SHORTEST_REACH = 64
"""The smallest largest distance that is drawn, if the model has positions for it."""
MOST_DISTANCES = 512
"""With more distances, only every nth is drawn, and the pair's own one."""


@dataclass(frozen=True, eq=False)
class QueryKeyPair:
    """The attention weight of one query and one key, with the numbers it is computed from.

    `q`, `k` and `products` are (d): query and key after any norm and rotation, and their
    product per dimension. `score` is the sum of the products times `scale`, bounded by the
    `cap` if there is one; `biased` is score + `bias`, the input of the softmax. `weight` is
    e^(biased − largest) / total, with `largest` and `total` over the `visible_keys`, and times any
    `row_scale`; a masked key has weight 0. `row_scores`, `row_weights` and `mask` are (n): the same
    for every key of this query. `difference` is the largest over the row between the weights
    of the pass and those recomputed from q and k in float64, relative to the row's largest
    weight. `sharing` are the heads that share this key, more than one if keys are grouped.
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
    row_scale: float | None = None

    @property
    def allowed(self) -> bool:
        return bool(self.mask[self.key])

    @property
    def visible_keys(self) -> int:
        return int(self.mask.sum())

    @property
    def products(self) -> Tensor:
        return self.q * self.k

    @property
    def dot(self) -> float:
        return float(self.products.sum())

    @property
    def positive(self) -> float:
        """The sum of the products above zero."""
        return float(self.products.clamp(min=0).sum())

    def strongest_keys(self) -> list[int]:
        """The keys that are not masked, the largest weight first."""
        order = self.row_weights.nan_to_num(-1.0).argsort(descending=True, stable=True)
        return [int(place) for place in order if self.mask[place]]

    def by_size(self) -> list[int]:
        """The dimensions, the largest absolute product first."""
        return [int(place) for place in self.products.abs().argsort(descending=True, stable=True)]


def query_key_pair(
    forward: ForwardPass, part: str, layer: int, head: int, query: int, key: int
) -> QueryKeyPair:
    """One query and one key of a head. Cost grows with n² × d."""
    q, keys, sharing = _query_and_keys(forward, site(part, layer), head, query)
    config = forward.config
    bias = forward.bias(part, layer, head)
    added = None if bias is None else bias[query].detach().double()
    mask = forward.mask(part, layer)[query]
    scores = forward.scores(part, layer, head)[query].double()
    weights = forward.weights(part, layer, head)[query].double()
    scored = scores if added is None else scores + added
    visible = scored[mask]
    rows = row_scale(forward, part, layer, head)
    rows = None if rows is None else rows[query]
    largest = float(visible.max()) if len(visible) else 0.0
    return QueryKeyPair(
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
        total=float((visible - largest).exp().sum()),
        difference=weights_difference(
            q[None], keys, added, mask[None], weights[None], forward.config, rows
        ),
        sharing=sharing,
        row_scale=None if rows is None else float(rows),
    )


def strongest(forward: ForwardPass, part: str, layer: int, head: int, query: int) -> int:
    """The key that a query attends to most; the first one if every key is masked."""
    weights = forward.weights(part, layer, head)[query].nan_to_num(-1.0)
    return int(weights.argmax())


def strongest_cell(forward: ForwardPass, part: str, layer: int, head: int) -> tuple[int, int]:
    """The query and key of the largest weight between tokens that are not special.

    The first key is left out too: many heads send the weight there that they do not need. If
    nothing else has a weight, it is the largest of all.
    """
    weights = forward.weights(part, layer, head).nan_to_num(-1.0)
    rows, columns = (
        torch.tensor([not token.special for token in tokens])
        for tokens in (forward.rows(part), forward.columns(part))
    )
    columns[0] = False
    words = weights.where(rows[:, None] & columns, 0)
    chosen = words if words.any() else weights
    query, key = divmod(int(chosen.argmax()), chosen.shape[1])
    return query, key


@dataclass(frozen=True)
class DistanceCurve:
    """The score or bias of a pair as a function of the distance of query and key.

    `what` is "score" with rotary positions (the whole score changes), and "bias" if a number
    is added to it. A distance is the query's position minus the key's; `actual` is the pair's
    own, `step` is above 1 if distances are skipped.
    """

    what: str
    points: tuple[tuple[int, float], ...]
    actual: int
    step: int


def by_distance(
    forward: ForwardPass, part: str, layer: int, head: int, query: int, key: int
) -> DistanceCurve | None:
    """The score or bias of the pair at every distance, by the model's own rotation or bias.

    None if positions change neither: they are added to the embedding, there are none, or it
    is cross-attention. Cost grows with distances × d.
    """
    if not part.endswith("self_attn"):
        return None
    stack = part.split(".")[0]
    positions: Positions = getattr(forward.trace.model, stack).positions
    places = positions_of(forward, stack)
    here = int(places[query])
    actual = here - int(places[key])
    distances, step = _distances(forward, part, actual)
    moved = here - distances  # the key's position at each distance
    if isinstance(positions, RotaryPositions):
        q, keys, _ = _query_and_keys(forward, site(part, layer), head, query)
        values = _turned(positions, q, keys[key], moved - int(places[key]), forward)
        what = "score"
    else:
        bias = positions.bias(torch.tensor([here]), moved, slice(head, head + 1))
        if bias is None:
            return None
        values, what = bias.detach()[0, 0, 0].double(), "bias"
    points = zip(distances.tolist(), values.tolist(), strict=True)
    return DistanceCurve(what, tuple(points), actual, step)


def _query_and_keys(
    forward: ForwardPass, at: str, head: int, query: int
) -> tuple[Tensor, Tensor, range]:
    """One query (d), the keys of its head (n, d) in float64, and the heads that share them."""
    q, k = forward.trace[f"{at}.q"], forward.trace[f"{at}.k"]
    size, group = q.shape[1] // k.shape[1], forward.config.kv_head(head)
    keys = k[forward.row, group].detach().double()
    sharing = range(group * size, (group + 1) * size)
    return q[forward.row, head, query].detach().double(), keys, sharing


def _distances(forward: ForwardPass, part: str, actual: int) -> tuple[Tensor, int]:
    """The distances that are drawn and their step; negative ones too unless the stack is causal."""
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
    """The scores with the key rotated further by `by` positions, (distances).

    A rotation that also scales (YaRN) has scaled this key once already.
    """
    stretch = 1.0 if positions.scaling is None else positions.scaling.attention_factor
    turned = positions.rotation(by)(k.expand(1, 1, len(by), -1))[0, 0].clone()
    turned[:, : positions.d_head] /= stretch
    config = forward.config
    scores = attention_scores(
        q[None, None, None], turned[None, None], config.scale, config.attention_cap
    )
    return scores[0, 0, 0]
