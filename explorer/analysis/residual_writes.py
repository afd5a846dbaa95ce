"""What one block writes into the residual stream at a few positions, and one key's part of it.

Only the rows of these positions are computed, from the recorded q, k, v and the residual stream
in front of the block.
Shapes: p positions, h heads, d width of the model, w width of one head.
Sources: Attention Is All You Need, section 3.2.2 (heads, joined by W_O) and 3.1 (add and norm).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from explorer.analysis.head_circuits import output_columns
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass
from models.attention import MultiHeadAttention, attention_scores, attention_weights, repeat_groups
from models.block import Residual
from models.frozen_scales import UNCHANGED, FrozenResidual, freeze_residual
from models.interventions import Replace
from models.trace import RecordingTap

ROWS = 96
"""Positions whose attention weights are computed together, up to the last key that they see."""


@dataclass(frozen=True, eq=False)
class HeadReads:
    """What each head reads at p positions: `heads` (h, p, w), weights times `values` (h, n, w).

    `weights` (h, ≤ `ROWS`, k) are of some positions after others; no k is after the last key seen.
    """

    weights: Sequence[Tensor]
    values: Tensor
    heads: Tensor

    def by_key(self, slopes: Tensor) -> Tensor:
        """(h, n): each head's output times `slopes` (h, p, w), by the key that it comes from."""
        mixed = torch.zeros_like(self.values)
        for weights, some in zip(self.weights, slopes.split(ROWS, 1), strict=True):
            mixed[:, : weights.shape[-1]].baddbmm_(weights.mT, some)
        return (mixed * self.values).sum(-1)

    def by_key_at(self, place: int, slopes: Tensor) -> Tensor:
        """The same of one position alone, for its `slopes` (h, w)."""
        weights, along = (
            self.weights[place // ROWS][:, place % ROWS],
            self.values @ slopes[..., None],
        )
        return nn.functional.pad(weights, (0, along.shape[1] - weights.shape[1])) * along[..., 0]


@dataclass(frozen=True, eq=False)
class SublayerWrite:
    """One sub-layer of a block: the residual stream (p, d) before it, and its output `out`."""

    residual: Residual
    stream: Tensor
    out: Tensor

    @property
    def after(self) -> Tensor:
        """The residual stream after the sub-layer's output is added, with the norms around it."""
        after: Tensor = self.residual(self.stream[None], lambda _: self.out[None])[0]
        return after

    @property
    def frozen(self) -> FrozenResidual:
        return freeze_residual(self.residual, self.stream, self.out)


@dataclass(frozen=True, eq=False)
class AttentionWrite(SublayerWrite, HeadReads):
    """An attention, and what its heads read."""

    attention: MultiHeadAttention

    def through(self, head: int, values: Tensor) -> Tensor:
        """The output projection of values of one head: (…, w) to (…, d), without its bias."""
        return values @ output_columns(self.attention, head).mT


@dataclass(frozen=True, eq=False)
class BlockWrites:
    """The writes of the attentions (by part) and the feed-forward layer of a block."""

    attentions: dict[str, AttentionWrite]
    mlp: SublayerWrite | None

    @property
    def after(self) -> Tensor:
        return (self.mlp or list(self.attentions.values())[-1]).after


def block_writes(forward: ForwardPass, stack: str, layer: int, places: Tensor) -> BlockWrites:
    """The writes of one layer at these positions. Cost grows with p × (n × d + d²) for n keys.

    A value inside the layer that an intervention has changed is that of the pass.
    """
    trace, row, name = forward.trace, slice(forward.row, forward.row + 1), f"{stack}.{layer}"
    with torch.no_grad():
        block: Any = getattr(trace.model, stack).blocks[layer]
        before = stream = trace[f"{name}.resid_pre"][forward.row, places]
        attentions: dict[str, AttentionWrite] = {}
        for kind, attention, residual in attentions_of(block):
            own = head_reads(forward, f"{name}.{kind}", places)
            out = attention.o_proj(own.heads.transpose(0, 1).flatten(1))
            if f"{name}.{kind}.out" in trace:
                out = trace[f"{name}.{kind}.out"][forward.row, places]
            write = AttentionWrite(
                own.weights, own.values, own.heads, residual, stream, out, attention
            )
            attentions[f"{stack}.{kind}"], stream = write, write.after
        if block.mlp is None:
            return BlockWrites(attentions, None)
        residual = block.mlp_residual
        changed = [site for site in trace.sites if site.startswith(f"{name}.mlp.")]
        edits = [Replace(site, trace[site][row, places]) for site in changed]
        tap = RecordingTap((), edits).at(f"{name}.mlp")
        out = block.mlp(residual.input_norm((before if block.parallel else stream)[None]), tap)[0]
        return BlockWrites(attentions, SublayerWrite(residual, stream, out))


def attentions_of(block: Any) -> Iterator[tuple[str, MultiHeadAttention, Residual]]:
    """Each attention of a block in its order, by its name, with the sum behind it."""
    yield "self_attn", block.self_attn, block.self_residual
    if block.cross_attn is not None:
        yield "cross_attn", block.cross_attn, block.cross_residual


def positions_of(forward: ForwardPass, stack: str) -> Tensor:
    """(t,): the positions of the tokens of a stack, as the model numbers them."""
    positions = forward.trace[f"{stack}.positions"]
    return positions[forward.row] if positions.dim() == 2 else positions


def head_reads(
    forward: ForwardPass, at: str, places: Tensor, dtype: torch.dtype | None = None
) -> HeadReads:
    """What every head reads at these positions, in the precision of the pass or another.

    Only the attention weights of these positions are computed.
    """
    trace, row, config = forward.trace, forward.row, forward.config
    q, k, v = (trace[f"{at}.{name}"][row : row + 1].to(dtype=dtype) for name in "qkv")
    k, v = (repeat_groups(vectors, config.n_heads) for vectors in (k, v))
    stack, layer, kind = at.split(".")
    visible = forward.mask(f"{stack}.{kind}", int(layer))[None, None]
    changed, weights = trace.values.get(f"{at}.weights"), list[Tensor]()
    for some in places.split(ROWS):
        if changed is not None:
            weights.append(changed[row, :, some].to(q))
            continue
        mask, bias = visible[:, :, some], None
        keys = max([0, *mask.any(-2).nonzero()[-1:, -1].tolist()]) + 1
        if kind == "self_attn":
            here = positions_of(forward, stack)
            bias = getattr(trace.model, stack).positions.bias(here[some], here[:keys])
        scores = attention_scores(q[:, :, some], k[:, :, :keys], config.scale, config.attention_cap)
        bias = None if bias is None else bias.to(scores.dtype)
        weights.append(attention_weights(scores, mask[..., :keys], bias)[0])
        if f"{at}.row_scale" in trace:
            weights[-1] = weights[-1] * trace[f"{at}.row_scale"][row, :, some]
    heads = torch.cat([some @ v[0, :, : some.shape[-1]] for some in weights], 1)
    if f"{at}.head_out" in trace:
        heads = trace[f"{at}.head_out"][row][:, places].to(heads)
    return HeadReads(weights, v[0], heads)


def value_writes(forward: ForwardPass, part: str, layer: int, head: int) -> Tensor:
    """(keys, d): what the head would write if its whole weight were on one token of the text.

    The values are those of the pass, with their bias; that of the output projection, which
    belongs to no key, is left out.
    """
    stack, kind = part.split(".")
    attention = getattr(getattr(forward.trace.model, stack).blocks[layer], kind)
    values = forward.trace[f"{site(part, layer)}.v"][forward.row, forward.config.kv_head(head)]
    return values @ output_columns(attention, head).mT


@dataclass(frozen=True, eq=False)
class KeyContribution:
    """The contribution of one key to one query in one head, up to the residual stream.

    `value` (w) is the key's; `weight` times it is its contribution to `head_out` (w), the sum
    over all keys. The output projection maps both to the residual stream: `key_write` and
    `head_write` (d). `head_write`, the `others` (heads) and the `bias` sum to `out`, and `added` is
    what the residual stream `before` receives of it; the result is `after`. `out_changes` and
    `sum_changes` are True where a norm or a factor changes what is added, or the sum.
    `difference` is the largest between the recomputed residual stream after the block and that
    of the pass, relative to its largest number.
    """

    weight: float
    value: Tensor
    head_out: Tensor
    key_write: Tensor
    head_write: Tensor
    others: Tensor
    bias: Tensor
    out: Tensor
    added: Tensor
    before: Tensor
    after: Tensor
    out_changes: bool
    sum_changes: bool
    difference: float

    @property
    def weighted_value(self) -> Tensor:
        """weight × value, (w)."""
        return self.weight * self.value

    @property
    def largest(self) -> int:
        """The dimension of the residual stream that the head changes most."""
        return int(self.head_write.abs().argmax())


def key_contribution(
    forward: ForwardPass, part: str, layer: int, head: int, query: int, key: int
) -> KeyContribution:
    """The contribution of one key. Cost grows with keys × d + d² of one layer."""
    stack = part.split(".")[0]
    block = block_writes(forward, stack, layer, torch.tensor([query]))
    write = block.attentions[part]
    bias = write.attention.o_proj.bias
    with torch.no_grad():
        head_write = write.through(head, write.heads[head])[0]
        constant = torch.zeros_like(head_write) if bias is None else bias.detach()
        weight, value = forward.weights(part, layer, head)[query, key], write.values[head, key]
        recorded = forward.trace[f"{stack}.{layer}.resid_post"][forward.row, query]
        frozen = write.frozen
        return KeyContribution(
            weight=float(weight),
            value=value,
            head_out=write.heads[head, 0],
            key_write=write.through(head, weight * value),
            head_write=head_write,
            others=write.out[0] - constant - head_write,
            bias=constant,
            out=write.out[0],
            added=frozen.write(write.out)[0],
            before=write.stream[0],
            after=write.after[0],
            out_changes=frozen.write is not UNCHANGED,
            sum_changes=frozen.summed is not UNCHANGED,
            difference=float((block.after[0] - recorded).abs().max() / recorded.abs().max()),
        )
