"""Attention sinks: the weight on the first token, what it moves, and which of two things it does.

A head that puts most of its weight on the first token either does nothing, since the value there
is small, or broadcasts what that token holds, so that it writes about the same at every position.
The norm of the value and the rank of what is written tell them apart.
Source: A Unifying View of Attention Sinks (Fesser et al. 2026), whose two mechanisms are called
NOP and broadcast there. The thresholds of the norm and the rank are ours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from explorer.analysis.head_circuits import output_columns
from explorer.catalog.attention_parts import site
from explorer.inference.forward_pass import ForwardPass

SINK_WEIGHT = 0.3
"""The least sink weight (When Attention Sink Emerges in Language Models, Gu et al. 2025)."""
LITTLE = 0.5
"""A sink whose write is at most this share of the other tokens' does nothing."""
ONE_DIRECTION = 0.9
"""The least share of the first direction in what a head writes that broadcasts."""

NO_SINK, NOTHING, BROADCAST, NEITHER = "no sink", "does nothing", "broadcasts", "neither"


@dataclass(frozen=True, eq=False)
class Sinks:
    """The numbers of every head of one attention, each (layers, heads); NaN without a value.

    The sink is the first key that any row sees. `weight` is the mean weight on it, over the rows
    that see it and another key, and `uniform` what uniform attention would put there. `value` is
    the norm of its value, and `write` that of its value after the output projection, both over the
    mean of the other keys'. Of what the head writes in these rows, `first` is the share of the
    squared norm along the first singular direction, and `rank` the effective rank, e to the entropy
    of the singular values over their sum (Roy and Vetterli 2007).
    """

    weight: Tensor
    uniform: Tensor
    value: Tensor
    write: Tensor
    first: Tensor
    rank: Tensor

    def verdict(self, layer: int, head: int) -> str:
        """One of NO_SINK, NOTHING, BROADCAST and NEITHER; empty where a number has no value."""
        at = layer, head
        numbers = [float(number[at]) for number in (self.weight, self.write, self.first)]
        weight, write, first = numbers
        if weight < SINK_WEIGHT or weight <= float(self.uniform[at]):
            return NO_SINK
        if not all(number == number for number in numbers):
            return ""
        if write <= LITTLE:
            return NOTHING
        return BROADCAST if first >= ONE_DIRECTION else NEITHER


def sink_rows(mask: Tensor) -> tuple[int, Tensor]:
    """The sink, and the rows (q,) that see it and another key; none if the mask is all False."""
    sink = int(mask.any(0).to(torch.uint8).argmax())
    return sink, mask[:, sink] & (mask.sum(-1) > 1)


def sink_weights(forward: ForwardPass, part: str) -> Tensor:
    """The sink weight of every head, (layers, heads); NaN where no row counts."""
    layers = []
    for layer in range(forward.part(part).layers):
        sink, rows = sink_rows(forward.mask(part, layer))
        heads = forward.some_heads(part, layer)
        layers.append(torch.cat([some[:, rows, sink].double().mean(-1) for some in heads]))
    return torch.stack(layers)


def sinks_by_layer(forward: ForwardPass, part: str) -> Iterator[Sinks]:
    """The numbers (1, heads) of one layer of self-attention after another.

    Cost grows with layers × heads × queries × (keys + d_head²).
    """
    stack, kind = part.split(".")
    for layer in range(forward.part(part).layers):
        attention = getattr(getattr(forward.trace.model, stack).blocks[layer], kind)
        mask = forward.mask(part, layer)
        sink, rows = sink_rows(mask)
        others = mask[rows].any(0)
        others[sink] = False
        values = forward.trace[f"{site(part, layer)}.v"][forward.row].double()
        numbers: list[Tensor] = []
        for weights in forward.some_heads(part, layer):
            for weight in weights[:, rows].double():
                head = len(numbers)
                # Norms and singular values are those through W_O itself, whose columns are Q R.
                narrow = torch.linalg.qr(output_columns(attention, head).double()).R
                value = values[forward.config.kv_head(head)]
                writes = value @ narrow.mT
                uniform = 1 / mask[rows].sum(-1).double()
                row = [weight[:, sink].mean(), uniform.mean()]
                row += [_over_others(vectors, sink, others) for vectors in (value, writes)]
                numbers.append(torch.stack([*row, *_directions(weight @ writes)]).detach())
        yield Sinks(*torch.stack(numbers, dim=1)[:, None])


def join_sinks(layers: Sequence[Sinks]) -> Sinks:
    """The numbers (layers, heads) of all layers from those of each."""
    names = [field.name for field in fields(Sinks)]
    return Sinks(*(torch.cat([getattr(layer, name) for layer in layers]) for name in names))


def _over_others(vectors: Tensor, sink: int, others: Tensor) -> Tensor:
    norms = vectors.norm(dim=-1)
    return norms[sink] / norms[others].mean()


def _directions(written: Tensor) -> tuple[Tensor, Tensor]:
    """The first direction's share of the squared norm of (rows, w), and the effective rank."""
    if not len(written) or not written.isfinite().all():
        return written.new_tensor(torch.nan), written.new_tensor(torch.nan)
    sizes = torch.linalg.svdvals(written)
    entropy = torch.special.entr(sizes / sizes.sum()).sum()
    return sizes[0].square() / sizes.square().sum(), entropy.exp()
