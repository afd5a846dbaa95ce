"""One head from its queries and keys to its output, every stage as a whole matrix.

Shapes: q queries, k keys, d width of one head. The scores, the bias, the mask and the weights
are those of the recorded pass; of a long text a window of queries and keys is taken, and the
softmax still runs over all keys.
Source: Attention Is All You Need, equation 1.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from models import TransformerConfig
from models.attention import attention_scores, attention_weights


@dataclass(frozen=True, eq=False)
class HeadStages:
    """softmax(Q Kᵀ × scale + M) V of one head, stage by stage.

    `q` (q, d), `k` and `v` (k, d) are after any norm and rotation; `dots` is Q Kᵀ (q, k),
    `scaled` the same times `scale` and bounded by the `cap` if there is one, `added` is M (the
    bias, −∞ for masked keys), `logits` their sum and `weights` its softmax over all keys; `out`
    (q, d) is the output of the head: the weights times the values of all keys. `rows` and
    `columns` are the queries and keys of this window. `difference` is the largest between the
    weights of the pass and the same recomputed in float64 from Q and K, relative to the largest
    weight of the row.
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
        difference=weights_difference(q, k, some, mask, weights, config),
    )


def weights_difference(
    q: Tensor,
    k: Tensor,
    bias: Tensor | None,
    mask: Tensor,
    weights: Tensor,
    config: TransformerConfig,
) -> float:
    """Between the weights (q, all k) and the same recomputed in float64, by each row's largest."""
    q, k = q.double()[None, None], k.double()[None, None]
    scores = attention_scores(q, k, config.scale, config.attention_cap)
    bias = None if bias is None else bias.double()
    recomputed = attention_weights(scores, mask[None, None], bias)[0, 0]
    largest = weights.amax(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
    return float(((recomputed - weights) / largest).abs().max()) if weights.numel() else 0.0
