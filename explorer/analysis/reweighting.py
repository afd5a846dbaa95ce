"""What is done to the weights of a head: keys hidden, values weighed in, words merged, mass cut.

Pure tensors. Shapes: q queries, k keys, d width of a head, D width of the model.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from explorer.analysis.word_groups import Group
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass


def hide(weights: Tensor, keys: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Weights (…, q, k) without these keys, each row scaled back to its sum; and what it lost.

    The second is the weight that was on the hidden keys, (…, q). A row that looked at
    nothing else becomes all zeros.
    """
    if not keys:
        return weights, weights.new_zeros(weights.shape[:-1])
    places = torch.tensor(sorted(set(keys)), device=weights.device)
    removed = weights[..., places].sum(-1)
    left = weights.index_fill(-1, places, 0)
    total, before = left.sum(-1, keepdim=True), weights.sum(-1, keepdim=True)
    scale = torch.where(total > 0, before / total.clamp_min(torch.finfo(total.dtype).tiny), 0)
    return left * scale, removed


def cut_mass(values: Tensor, share: float) -> Tensor:
    """The fewest keys of each row that reach this share of its sum, zeros elsewhere.

    Of equal values the earlier key is kept. What is no number stays and counts for
    nothing. Values are not negative. Cost grows with q · k · log k.
    """
    if share >= 1:
        return values
    known = torch.nan_to_num(values.double(), nan=0.0)
    ordered, order = known.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(-1) - ordered
    enough = share * known.sum(-1, keepdim=True)
    kept = torch.zeros_like(known, dtype=torch.bool)
    kept.scatter_(-1, order, before < enough * (1 - 1e-9))
    return torch.where(kept | values.isnan(), values, 0)


def by_value_norm(weights: Tensor, v: Tensor, o_slice: Tensor | None = None) -> Tensor:
    """Every weight (q, k) times the length of what it brings: w_ij · ‖v_j W_O‖.

    `v` is (k, d); `o_slice` (D, d) the head's own columns of the output projection, and
    without it the length is that of v_j alone. The output's bias belongs to no key and
    is left out. Source: Attention is Not Only a Weight (Kobayashi et al. 2020), section 2.3.
    """
    brought = v if o_slice is None else v @ o_slice.mT
    return weights * brought.norm(dim=-1)


def merge(values: Tensor, row_groups: Sequence[Group], column_groups: Sequence[Group]) -> Tensor:
    """Values (…, q, k) by group: the sum over keys, the mean over queries.

    Queries that look at nothing are left out of the mean, so that a row goes on adding up to one.
    """
    summed = added(values, column_groups, -1)
    seeing = (summed != 0).any(-1, keepdim=True).to(summed.dtype)
    count = added(seeing, row_groups, -2)
    return added(summed, row_groups, -2) / count.clamp_min(1)


def added(values: Tensor, groups: Sequence[Group], dim: int) -> Tensor:
    """Values summed by group along one dimension."""
    shape = list(values.shape)
    shape[dim] = len(groups)
    owner = [number for number, group in enumerate(groups) for _ in group]
    return values.new_zeros(shape).index_add_(
        dim, torch.tensor(owner, device=values.device), values
    )


def value_and_output(
    forward: ForwardPass, part: str, layer: int, head: int
) -> tuple[Tensor, Tensor]:
    """The head's values (k, d), of its group where they are shared, and its part of W_O (D, d)."""
    stack, kind = part.split(".")
    attention = getattr(getattr(forward.trace.model, stack).blocks[layer], kind)
    grouped = forward.trace[f"{site(part, layer)}.v"][forward.row]
    v = grouped[head * grouped.shape[0] // attention.n_heads]
    width = v.shape[-1]
    return v, attention.o_proj.weight.detach()[:, head * width : (head + 1) * width]
