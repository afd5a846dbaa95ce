"""Information flow: how much each part contributes to a token's new residual stream.

In one sub-layer the residual stream of a query becomes y, the sum of the old stream and of what
every key writes into it over all heads, z = Σ_h A_h · v_h · W_O^h (or of what the feed-forward
layer writes). The share of a part is max(0, ‖y‖₁ − ‖y − part‖₁), divided by the sum over all
parts. The biases of an attention are in y and have no share. After a norm the parts are those of
the norm with its scale frozen, which sum to the same y.

In a pass with interventions, what one writes in place of a part is in y and has no share, and the
importance of a residual stream that is patched from another text ends there.

Going backwards from an answer, importance starts as 1 at the output position, and every sub-layer
splits it by the shares. The browser does this (`pass_map/flow.js`); `route` does it in torch.
Source: Information Flow Routes (Ferrando and Voita 2024), section 2.
Shapes: q queries, k keys, h heads, d width of the model.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from explorer.analysis.logit_attribution import positions_read
from explorer.analysis.output_change import has_words, last_streams
from explorer.analysis.residual_writes import attentions_of
from explorer.catalog.opened_model import OpenModel
from explorer.inference.answers import shown_place
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached, is_cached
from explorer.interventions import edits
from explorer.system.cooperative import interruptible
from models.attention import MultiHeadAttention, repeat_groups
from models.block import Block, Residual
from models.frozen_scales import freeze_residual, residual_without_scale, sum_norm

MOST_HELD = 16_000_000
"""The most numbers of z, (q, k, d), in memory at a time."""
MOST_WORK, LITTLE_WORK = 4_000_000_000, 400_000_000
"""layers × tokens² × d × (heads + 4): two seconds of one core, and a fifth of one."""


@dataclass(frozen=True, eq=False)
class AttentionShares:
    """One attention: the shares of every key and of the old residual stream in each query.

    `keys` (q, k) and `residual` (q,) sum to 1 in every row, or are all NaN where no part brings
    the stream nearer to its sum, or all 0 where it is patched after the block. `heads` (q, k) is
    the head whose part of z has the largest norm.
    """

    keys: Tensor
    residual: Tensor
    heads: Tensor


@dataclass(frozen=True, eq=False)
class BlockShares:
    """One block: its attentions by part in their order, and the feed-forward layer's share (q,).

    In a `parallel` block the feed-forward layer reads the input of the block.
    """

    attentions: dict[str, AttentionShares]
    mlp: Tensor | None
    parallel: bool


@dataclass(frozen=True, eq=False)
class InformationFlow:
    """The shares of every block, by stack from its first layer to its last.

    `starts` (answers, t) is the importance of each position for each answer: 1 at the output
    position, or shares of the positions that a classifier reads.
    """

    stacks: dict[str, tuple[BlockShares, ...]]
    starts: Tensor


def cached_flow(opened: OpenModel, forward: ForwardPass) -> InformationFlow:
    """The shares of a pass that `run_text` made, computed once."""
    key = "information flow", *forward.key
    return cached(opened, key, lambda: information_flow(forward))


def has_flow(opened: OpenModel, forward: ForwardPass) -> bool:
    return is_cached(opened, ("information flow", *forward.key))


def cached_route(opened: OpenModel, forward: ForwardPass, answer: int) -> "Route":
    """The route to one answer of a pass that `run_text` made, computed once."""
    key = "route", *forward.key, answer
    flow = cached_flow(opened, forward)
    return cached(opened, key, lambda: route(flow, flow.starts[answer]))


def first_answer(opened: OpenModel, forward: ForwardPass) -> int:
    """The answer that is traced first; the only one if the model predicts a class."""
    if forward.config.head == "classifier":
        return 0
    return shown_place(opened, forward.last_stack_tokens)


def is_computable(forward: ForwardPass) -> bool:
    """Whether the shares of this text are computed in seconds."""
    return max(len(forward.source), len(forward.target)) <= most_tokens(forward)


def most_tokens(forward: ForwardPass) -> int:
    """The longest text whose shares are computed in seconds."""
    return int((MOST_WORK / _work(forward)) ** 0.5)


def is_quick(forward: ForwardPass) -> bool:
    """Whether the shares of this text are computed without a noticeable wait."""
    tokens = max(len(forward.source), len(forward.target))
    return tokens**2 * _work(forward) <= LITTLE_WORK


def _work(forward: ForwardPass) -> int:
    """The multiplications for one pair of tokens."""
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
    in_layer = (edit for edit in forward.edits if getattr(edit, "layer", None) == layer)
    here = [edit for edit in in_layer if edit.part.startswith(f"{stack}.")]
    with torch.no_grad():
        before = x = trace[f"{stack}.{layer}.resid_pre"][row]
        after = trace[f"{stack}.{layer}.resid_post"][row]
        attentions: dict[str, AttentionShares] = {}
        for name, attention, residual in attentions_of(block):
            at, part = f"{stack}.{layer}.{name}", f"{stack}.{name}"
            weights, values = trace.weights(at)[row], trace[f"{at}.v"][row]
            weights = _own_weights(weights, [edit for edit in here if edit.part == part])
            out = None  # that of these weights and values
            if f"{at}.out" in trace:
                out = trace[f"{at}.out"][row]
            elif f"{at}.head_out" in trace:
                out = attention.o_proj(trace[f"{at}.head_out"][row].transpose(0, 1).flatten(1))
            attentions[part], x = _attention_shares(attention, residual, weights, values, x, out)
        mlp = None
        if block.mlp is not None:
            stream, write = x, after - x
            if here or not isinstance(sum_norm(block.mlp_residual), nn.Identity):
                reads = block.mlp_residual.input_norm((before if block.parallel else x)[None])
                name = f"{stack}.{layer}.mlp.out"
                out = trace[name][row] if name in trace else block.mlp(reads)[0]
                frozen = freeze_residual(block.mlp_residual, x, out)
                stream, write = map(frozen.summed.linear, (x, frozen.write(out)))
            if any(isinstance(edit, edits.AblateMlp) for edit in here):
                write = torch.zeros_like(write)
            mlp = _shares(after, torch.stack([write, stream]))[0]
    for edit in here:
        if isinstance(edit, edits.Patch) and edit.head is None:
            for shares in attentions.values():
                shares.keys[edit.position] = shares.residual[edit.position] = 0
            if mlp is not None:
                mlp[edit.position] = 0
    return BlockShares(attentions, mlp, block.parallel)


def _own_weights(weights: Tensor, here: list[edits.Intervention]) -> Tensor:
    """The weights (h, q, k), 0 where an intervention has replaced what the head writes."""
    weights = weights.clone() if here else weights
    for edit in here:
        match edit:
            case edits.AblateHead(head=head):
                weights[head] = 0
            case edits.AblateAttention():
                weights[:] = 0
            case edits.Patch(head=int(head), position=position):
                weights[head, position] = 0
    return weights


def _attention_shares(
    attention: MultiHeadAttention,
    residual: Residual,
    weights: Tensor,
    values: Tensor,
    x: Tensor,
    changed: Tensor | None = None,
) -> tuple[AttentionShares, Tensor]:
    """The shares in one attention, and the residual stream (q, d) after it.

    `weights` are (h, q, k), `values` (g, k, w), `x` (q, d) is the residual stream before it, and
    `changed` (q, d) its output, where that is not the one of these weights and values.
    """
    projection = attention.o_proj.weight.unflatten(1, (attention.n_heads, -1))
    values = repeat_groups(values[None], attention.n_heads)[0]
    projected = torch.einsum("hkw,dhw->khd", values, projection)
    mixed = weights.permute(2, 1, 0)  # (k, q, h)
    # The norm of each head's part, up to a factor of the query that all heads share.
    of_out, of_sum = residual_without_scale(residual)
    norms = of_sum(of_out(projected)).norm(dim=-1)
    heads = (mixed.abs() * norms[:, None]).argmax(-1).T
    shares, after = [], []
    some = max(1, MOST_HELD // max(1, projected.shape[0] * projected.shape[2]))
    for first in interruptible(range(0, len(x), some)):
        z = mixed[:, first : first + some] @ projected  # (k, some queries, d)
        out = z.sum(0)
        if attention.o_proj.bias is not None:
            out = out + attention.o_proj.bias
        out = out if changed is None else changed[first : first + some]
        stream = x[first : first + some]
        frozen = freeze_residual(residual, stream, out)
        after.append(frozen(stream, out))
        z, stream = frozen.summed.linear(frozen.write.linear(z)), frozen.summed.linear(stream)
        shares.append(_shares(after[-1], z, stream[None]))
    by_query = torch.cat(shares, 1).T
    return AttentionShares(by_query[:, :-1], by_query[:, -1], heads), torch.cat(after)


def _shares(after: Tensor, *parts: Tensor) -> Tensor:
    """The share of every part, each (some, q, d), in the sum `after` (q, d): (parts, q).

    NaN where every share would be 0.
    """
    away = [torch.sub(after, part).abs_().sum(-1) for part in parts]
    nearer = (after.abs().sum(-1) - torch.cat(away)).clamp_(min=0)
    return nearer / nearer.sum(0)


def _starts(forward: ForwardPass) -> Tensor:
    """The importance of each position for each answer at the end, (answers, t)."""
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
    """How much of an answer flows through every residual stream and every edge.

    By stack, `streams` (layers + 1, t) is the importance of the residual stream before each layer
    and after the last, and `mlp` (layers, t) that of the feed-forward layers; by part, `edges`
    (layers, q, k) is that of each key.
    """

    streams: dict[str, Tensor]
    edges: dict[str, Tensor]
    mlp: dict[str, Tensor]


def route(flow: InformationFlow, start: Tensor) -> "Route":
    """The route backwards from an answer with the importance `start` (t,). Cost grows with shares.

    Where a sub-layer has no shares, the importance stays with the residual stream.
    """
    streams: dict[str, Tensor] = {}
    edges: dict[str, list[Tensor]] = {}
    mlps: dict[str, Tensor] = {}
    at_end: dict[str, Tensor] = {}
    for stack in reversed(flow.stacks):
        blocks = flow.stacks[stack]
        here = at_end.get(stack, start.double())
        levels, mlp = [here], []
        for block in reversed(blocks):
            here, of_edges, of_mlp = _back(block, here)
            levels.append(here)
            mlp.append(of_mlp)
            for part, edge in of_edges.items():
                edges.setdefault(part, []).append(edge)
                if part.endswith("cross_attn"):
                    at_end["encoder"] = at_end.get("encoder", torch.zeros(())) + edge.sum(0)
        streams[stack] = torch.stack(levels[::-1])
        mlps[stack] = torch.stack(mlp[::-1])
    by_part = {part: torch.stack(layers[::-1]) for part, layers in edges.items()}
    return Route(streams, by_part, mlps)


def _back(block: BlockShares, here: Tensor) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """The importance (q,) before a block, that of its edges, and of its feed-forward layer."""
    share = torch.zeros_like(here) if block.mlp is None else block.mlp.double().nan_to_num(0)
    mlp = here * share
    past_attention = mlp if block.parallel else torch.zeros_like(mlp)
    here = here - past_attention
    edges: dict[str, Tensor] = {}
    for part, shares in reversed(block.attentions.items()):
        edge = here[:, None] * shares.keys.double().nan_to_num(0)
        edges[part] = edge
        here = here * shares.residual.double().nan_to_num(1)
        if part.endswith("self_attn"):
            here = here + edge.sum(0)
    return here + past_attention, edges, mlp
