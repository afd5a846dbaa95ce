"""Information flow: the share of each part in what a token's residual stream becomes.

In one sub-layer the residual stream of a query becomes y, a sum: of what it was, and of what
every key writes into it over all heads, z = Σ_h A_h · v_h · W_O^h (or of what the feed-forward
layer writes). The share of a part is max(0, ‖y‖₁ − ‖y − part‖₁), divided by the sum over all
parts. The biases of an attention are in y and have no share. Behind a norm the parts are those of
the norm with its scale frozen, which sum to the same y.

Followed backwards from an answer, the shares are a walk: importance 1 at the position that is
asked, split at every sub-layer by the shares. The browser follows it (`pass_map/flow.js`);
`route` is the same in torch.
Source: Information Flow Routes (Ferrando and Voita 2024), section 2.
Shapes: q queries, k keys, h heads, d width of the model.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from explorer.analysis.logit_attribution import positions_read
from explorer.analysis.output_change import has_words, last_streams
from explorer.analysis.residual_writes import block_writes
from explorer.catalog.opened_model import OpenModel
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import is_kept, kept
from explorer.system.cooperative import interruptible
from models.attention import MultiHeadAttention, repeat_groups
from models.block import Block, Residual
from models.frozen_scales import freeze_residual, residual_without_scale, sum_norm

MOST_HELD = 16_000_000
"""Numbers of z, (q, k, d), that are in memory together."""
MOST_WORK, LITTLE_WORK = 4_000_000_000, 400_000_000
"""layers × tokens² × d × (heads + 4): two seconds of one core, and a fifth of one."""


@dataclass(frozen=True, eq=False)
class AttentionShares:
    """One attention: each key's share in what a query becomes, and that of the residual stream.

    `keys` (q, k) and `residual` (q,) sum to 1 in every row, or are all NaN where no part points
    where the sum does. `heads` (q, k) is the head whose part of z is the longest.
    """

    keys: Tensor
    residual: Tensor
    heads: Tensor


@dataclass(frozen=True, eq=False)
class BlockShares:
    """One block: its attentions by part in their order, and the feed-forward layer's share (q,).

    In a `parallel` block the feed-forward layer reads what entered the block.
    """

    attended: dict[str, AttentionShares]
    mlp: Tensor | None
    parallel: bool


@dataclass(frozen=True, eq=False)
class InformationFlow:
    """The shares of every block, by stack from its first layer to its last.

    `starts` (answers, t) is where the walk to each answer begins in the last stack: at its
    position, or spread over those that a classifier reads.
    """

    stacks: dict[str, tuple[BlockShares, ...]]
    starts: Tensor


def kept_flow(opened: OpenModel, forward: ForwardPass) -> InformationFlow:
    """The shares of a pass that `run_text` made, computed once."""
    key = "information flow", forward.text, forward.pair
    return kept(opened, key, lambda: information_flow(forward))


def has_flow(opened: OpenModel, forward: ForwardPass) -> bool:
    """Whether the shares of this pass are there to be had at once."""
    return is_kept(opened, ("information flow", forward.text, forward.pair))


def kept_route(opened: OpenModel, forward: ForwardPass, answer: int) -> "Route":
    """How one answer of a pass that `run_text` made came about, computed once."""
    key = "route", forward.text, forward.pair, answer
    flow = kept_flow(opened, forward)
    return kept(opened, key, lambda: route(flow, flow.starts[answer]))


def is_computable(forward: ForwardPass) -> bool:
    """Whether the shares of this text are computed in seconds."""
    return max(len(forward.source), len(forward.target)) <= most_tokens(forward)


def most_tokens(forward: ForwardPass) -> int:
    """The longest text whose shares are computed in seconds."""
    return int((MOST_WORK / _work(forward)) ** 0.5)


def is_quick(forward: ForwardPass) -> bool:
    """Whether the shares of this text are computed in less time than anybody waits for."""
    tokens = max(len(forward.source), len(forward.target))
    return tokens**2 * _work(forward) <= LITTLE_WORK


def _work(forward: ForwardPass) -> int:
    """What one pair of tokens costs."""
    config = forward.config
    layers = max(config.n_layers, config.encoder_layers)
    return layers * config.d_model * (config.n_heads + 4)


def information_flow(forward: ForwardPass) -> InformationFlow:
    """All shares of a pass. Cost grows with layers × tokens² × (heads × d + d)."""
    stacks = {}
    for stack in forward.config.stacks:
        layers = interruptible(range(len(getattr(forward.trace.model, stack).blocks)))
        stacks[stack] = tuple(_block_shares(forward, stack, layer) for layer in layers)
    return InformationFlow(stacks, _starts(forward))


def _block_shares(forward: ForwardPass, stack: str, layer: int) -> BlockShares:
    trace, row = forward.trace, forward.row
    block: Block = getattr(trace.model, stack).blocks[layer]
    with torch.no_grad():
        x = trace[f"{stack}.{layer}.resid_pre"][row]
        after = trace[f"{stack}.{layer}.resid_post"][row]
        attended: dict[str, AttentionShares] = {}
        for name in ("self_attn", "cross_attn") if block.cross_attn is not None else ("self_attn",):
            attention, residual = getattr(block, name), getattr(block, f"{name[:-5]}_residual")
            at = f"{stack}.{layer}.{name}"
            weights, values = trace.weights(at)[row], trace[f"{at}.v"][row]
            shares, x = _attention_shares(attention, residual, weights, values, x)
            attended[f"{stack}.{name}"] = shares
        if block.mlp is None:
            return BlockShares(attended, None, block.parallel)
        kept, written = x, after - x
        if not isinstance(sum_norm(block.mlp_residual), nn.Identity):  # it changes what was there
            wrote = block_writes(forward, stack, layer, torch.arange(len(x))).mlp
            assert wrote is not None
            kept, written = map(wrote.frozen.summed.linear, (x, wrote.frozen.written(wrote.out)))
        mlp = _shares(after, torch.stack([written, kept]))[0]
        return BlockShares(attended, mlp, block.parallel)


def _attention_shares(
    attention: MultiHeadAttention, residual: Residual, weights: Tensor, values: Tensor, x: Tensor
) -> tuple[AttentionShares, Tensor]:
    """The shares in one attention, and the residual stream (q, d) after it.

    `weights` (h, q, k), `values` (g, k, w), `x` (q, d) the residual stream before it.
    """
    projection = attention.o_proj.weight.unflatten(1, (attention.n_heads, -1))
    values = repeat_groups(values[None], attention.n_heads)[0]
    projected = torch.einsum("hkw,dhw->khd", values, projection)
    mixed = weights.permute(2, 1, 0)  # (k, q, h)
    # The length of each head's part, up to the factor of the query, which all of them have.
    of_out, of_sum = residual_without_scale(residual)
    longest = of_sum(of_out(projected)).norm(dim=-1)
    heads = (mixed.abs() * longest[:, None]).argmax(-1).T
    shares, after = [], []
    some = max(1, MOST_HELD // max(1, projected.shape[0] * projected.shape[2]))
    for first in interruptible(range(0, len(x), some)):
        z = mixed[:, first : first + some] @ projected  # (k, some queries, d)
        out = z.sum(0)
        if attention.o_proj.bias is not None:
            out = out + attention.o_proj.bias
        stream = x[first : first + some]
        frozen = freeze_residual(residual, stream, out)
        z, kept = frozen.summed.linear(frozen.written.linear(z)), frozen.summed.linear(stream)
        after.append(frozen(stream, out))
        shares.append(_shares(after[-1], z, kept[None]))
    found = torch.cat(shares, 1).T
    return AttentionShares(found[:, :-1], found[:, -1], heads), torch.cat(after)


def _shares(after: Tensor, *parts: Tensor) -> Tensor:
    """The share of every part, each (some, q, d), in the sum `after` (q, d): (parts, q).

    NaN where no part has any.
    """
    away = [torch.sub(after, each).abs_().sum(-1) for each in parts]
    nearer = (after.abs().sum(-1) - torch.cat(away)).clamp_(min=0)
    return nearer / nearer.sum(0)


def _starts(forward: ForwardPass) -> Tensor:
    """Where the walk to each answer begins, (answers, t)."""
    tokens = forward.last_stack_tokens
    config = forward.config
    if has_words(config) or config.head == "none":
        return torch.eye(len(tokens))
    places, _ = positions_read(forward, 0)
    starts = torch.zeros(1, len(tokens))
    if config.pooling != "mean":
        starts[0, places] = 1
        return starts
    stack, count = last_streams(config)
    model: Any = forward.trace.model
    with torch.no_grad():
        last = forward.trace[f"{stack}.{count - 1}.resid_post"][forward.row, places]
        parts = model.last_stack.norm(last) / len(places)
        starts[0, places] = _shares(parts.sum(0, keepdim=True), parts[:, None])[:, 0].float()
    return starts


@dataclass(frozen=True, eq=False)
class Route:
    """How an answer came about: importance of every residual stream and of every edge.

    By stack, `streams` (layers + 1, t) is the importance of the residual stream before each layer
    and after the last; by part, `edges` (layers, q, k) is what each key contributes and `mlp`
    (by stack, (layers, t)) what the feed-forward layers do.
    """

    streams: dict[str, Tensor]
    edges: dict[str, Tensor]
    mlp: dict[str, Tensor]


def route(flow: InformationFlow, start: Tensor) -> "Route":
    """Backwards from an answer whose importance is `start` (t,). Cost grows with all shares.

    Where a sub-layer has no shares, the importance stays with the residual stream.
    """
    streams: dict[str, Tensor] = {}
    edges: dict[str, list[Tensor]] = {}
    mlps: dict[str, Tensor] = {}
    given: dict[str, Tensor] = {}
    for stack in reversed(flow.stacks):
        blocks = flow.stacks[stack]
        here = given.get(stack, start.double())
        levels, mlp = [here], []
        for block in reversed(blocks):
            here, passed, crossed = _back(block, here)
            levels.append(here)
            mlp.append(crossed.pop("mlp"))
            for part, edge in passed.items():
                edges.setdefault(part, []).append(edge)
                if part.endswith("cross_attn"):
                    given["encoder"] = given.get("encoder", torch.zeros(())) + edge.sum(0)
        streams[stack] = torch.stack(levels[::-1])
        mlps[stack] = torch.stack(mlp[::-1])
    return Route(streams, {part: torch.stack(each[::-1]) for part, each in edges.items()}, mlps)


def _back(block: BlockShares, here: Tensor) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """The importance (q,) before a block, that of its edges, and of its feed-forward layer."""
    share = torch.zeros_like(here) if block.mlp is None else block.mlp.double().nan_to_num(0)
    mlp = here * share
    past_attention = mlp if block.parallel else torch.zeros_like(mlp)
    here = here - past_attention
    edges: dict[str, Tensor] = {}
    for part, found in reversed(block.attended.items()):
        edge = here[:, None] * found.keys.double().nan_to_num(0)
        edges[part] = edge
        here = here * found.residual.double().nan_to_num(1)
        if part.endswith("self_attn"):
            here = here + edge.sum(0)
    return here + past_attention, edges, {"mlp": mlp}
