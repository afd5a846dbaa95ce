"""Attention sinks: the weight on the first token, what it moves, and what happens without it.

A head that puts most of its weight on the first token either does nothing, since the value there
is small, or broadcasts what that token holds, so that it writes about the same at every position.
Source: A Unifying View of Attention Sinks (Fesser et al. 2026), whose two mechanisms are called
NOP and broadcast there. The thresholds of the norm and the rank are ours.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from explorer.analysis.head_circuits import output_columns
from explorer.analysis.output_change import divergence, has_words, last_stream, over_text
from explorer.catalog.attention_parts import site
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPass, rerun
from models.interventions import Edit, Replace, ReplaceAt

SINK_WEIGHT = 0.3
"""The least sink weight (When Attention Sink Emerges in Language Models, Gu et al. 2025)."""
LITTLE, ONE_DIRECTION = 0.5, 0.9
"""The largest write of a sink that does nothing, the least first direction of a broadcast."""

EXPERIMENTS = ("removed", "replaced", "cut", "zeroed")
FEWEST_TOKENS = 3
"""With fewer, no token is predicted that every experiment leaves in place."""


class Sinks(NamedTuple):
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
        """What the head has, in words."""
        weight, uniform, _, write, first, _ = (float(number[layer, head]) for number in self)
        if weight < SINK_WEIGHT or weight <= uniform:
            return "no sink"
        if not all(number == number for number in (weight, write, first)):
            return "no value that can be measured"
        if write <= LITTLE:
            return "a sink that does nothing"
        return f"a sink that {'broadcasts' if first >= ONE_DIRECTION else 'does neither'}"


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


def sinks_by_layer(forward: ForwardPass, part: str) -> Iterator[Tensor]:
    """The numbers of Sinks, (6, heads), of one layer of self-attention after another.

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
        uniform, numbers = 1 / mask[rows].sum(-1).double(), list[Tensor]()
        for weights in forward.some_heads(part, layer):
            for weight in weights[:, rows].double():
                head = len(numbers)
                # Norms and singular values are those through W_O itself, whose columns are Q R.
                narrow = torch.linalg.qr(output_columns(attention, head).double()).R
                value = values[forward.config.kv_head(head)]
                writes = value @ narrow.mT
                norms = (vectors.norm(dim=-1) for vectors in (value, writes))
                row = [weight[:, sink].mean(), uniform.mean()]
                row += [norm[sink] / norm[others].mean() for norm in norms]
                numbers.append(torch.stack([*row, *_directions(weight @ writes)]).detach())
        yield torch.stack(numbers, dim=1)


def _directions(written: Tensor) -> tuple[Tensor, Tensor]:
    """The first direction's share of the squared norm of (rows, w), and the effective rank."""
    if not len(written) or not written.isfinite().all():
        return written.new_tensor(torch.nan), written.new_tensor(torch.nan)
    sizes = torch.linalg.svdvals(written)
    entropy = torch.special.entr(sizes / sizes.sum()).sum()
    return sizes[0].square() / sizes.square().sum(), entropy.exp()


class SinkEffect(NamedTuple):
    """The loss before and after, in nats per token, and the sink weights (layers, heads) after.

    Without a predicted next token `before` is None, and `after` how much the output changes: the
    mean KL over positions, the divergence of a whole output, or the relative change of the last
    residual stream of a model without a head.
    """

    before: float | None
    after: float
    weights: Tensor


def sink_experiment(
    opened: OpenModel, forward: ForwardPass, name: str, part: str, token: int
) -> SinkEffect:
    """The effect of one of EXPERIMENTS on the first token of a part, in every head.

    The token is removed, replaced by another `token`, cut from every row that sees another key, or
    its value is zeroed. Costs a pass and the logits of every position.
    """
    tokens, source, target = forward.rows(part), forward.source, forward.target
    stack = part.split(".")[0]
    sink, _ = sink_rows(forward.mask(part))
    edits: list[Edit] = []
    match name:
        case "removed":
            tokens = tokens[1:]
        case "replaced":
            tokens = replace(tokens[0], id=token), *tokens[1:]
        case "cut":
            for layer in range(forward.part(part).layers):
                mask = forward.mask(part, layer).clone()
                mask[sink_rows(mask)[1], sink] = False
                edits.append(Replace(f"{site(part, layer)}.mask", mask))
        case "zeroed":
            nothing = torch.zeros(forward.config.head_width)
            edits = [ReplaceAt(f"{stack}.*.self_attn.v", sink, nothing)]
    source, target = (tokens, target) if stack == "encoder" else (source, tokens)
    after = rerun(opened, forward, source, target, edits)
    return SinkEffect(*_change(forward, after), sink_weights(after, part))


def _change(before: ForwardPass, after: ForwardPass) -> tuple[float | None, float]:
    """See SinkEffect. The first position is left out, and a removed token is not in either."""
    config, traces = before.config, (before.trace, after.trace)
    missing = len(before.last_stack_tokens) - len(after.last_stack_tokens)
    if has_words(config):
        ids = before.predicted_ids[1:]
        change = over_text(*traces, (ids, ids), first=(1, 1 - missing))
        return change.loss or (None, float(change.kl.mean()))
    if config.head != "none":
        return None, float(divergence(config, *(passed.output[0] for passed in traces)))
    old, new = last_stream(traces[0])[0, 1:], last_stream(traces[1])[0, 1 - missing :]
    return None, float((new - old).norm() / old.norm())
