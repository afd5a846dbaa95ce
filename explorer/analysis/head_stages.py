"""One head from its queries and keys to what it gives, every stage as a whole matrix.

Shapes: q queries, k keys, d width of one head. The scores, the bias, the mask and the
weights are the recorded pass's; of a long text a window of queries and keys is taken, and
every softmax still runs over all keys.
Source: Attention Is All You Need, equation 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from models.attention import attention_scores


@dataclass(frozen=True, eq=False)
class Stages:
    """softmax(Q Kᵀ × scale + M) V of one head, stage by stage.

    `q` (q, d), `k` and `v` (k, d) as they met; `dots` is Q Kᵀ (q, k), `scaled` the same times
    `scale` and bent where there is a `cap`, `added` is M (the bias, −∞ where the mask forbids),
    `logits` their sum and `weights` the softmax of it over all keys; `out` (q, d) is what the
    head gives: the weights times the values of all keys. `rows` and `columns` are the queries
    and keys of this window. `difference` is the largest between a row of weights of the pass
    and the same made again in float64 from Q and K, by the largest weight of that row.
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
    difference: float


def stages(
    forward: ForwardPass, part: str, layer: int, head: int, rows: range, columns: range
) -> Stages:
    """The stages over these queries and keys. Cost grows with all queries × all keys × d."""
    at = site(part, layer)
    config, trace = forward.config, forward.trace
    down, across = slice(rows.start, rows.stop), slice(columns.start, columns.stop)
    k, v = trace[f"{at}.k"][forward.row], trace[f"{at}.v"][forward.row]
    group = head // (config.n_heads // len(k))
    q, k, v = trace[f"{at}.q"][forward.row, head, down], k[group], v[group]
    bias = forward.bias(part, layer, head)
    mask = forward.mask(part, layer)[down]
    weights = forward.weights(part, layer, head)[down]
    scaled = forward.scores(part, layer, head)[down, across]
    some = None if bias is None else bias[down]
    added = torch.zeros_like(scaled) if some is None else some[:, across].to(scaled.dtype)
    allowed = mask[:, across]
    forbidden = -torch.inf
    return Stages(
        rows=rows,
        columns=columns,
        q=q,
        k=k[across],
        v=v[across],
        dots=attention_scores(q[None, None], k[None, None, across], 1.0)[0, 0],
        scaled=scaled,
        added=added.masked_fill(~allowed, forbidden),
        logits=(scaled + added).masked_fill(~allowed, forbidden),
        weights=weights[:, across],
        out=weights @ v,
        allowed=allowed,
        scale=config.scale,
        cap=config.attention_cap,
        has_bias=bias is not None,
        difference=_difference(q, k, some, mask, weights, forward),
    )


def _difference(
    q: Tensor, k: Tensor, bias: Tensor | None, mask: Tensor, weights: Tensor, forward: ForwardPass
) -> float:
    """Between the weights (q, all k) and the same made again in float64, by each row's largest."""
    config = forward.config
    again = attention_scores(
        q.double()[None, None], k.double()[None, None], config.scale, config.attention_cap
    )[0, 0]
    again = again if bias is None else again + bias.double()
    again = again.masked_fill(~mask, -torch.inf).softmax(-1).masked_fill(~mask, 0.0)
    largest = weights.amax(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
    return float(((again - weights) / largest).abs().max()) if weights.numel() else 0.0
