"""What every head and block adds to one logit directly, past no other block.

The residual stream that the head of the model reads is a sum: the embedding, and what each head
and each feed-forward layer wrote. With norms frozen (`explorer.analysis.frozen_norms`) all that
follows is linear, so the logit is a sum over the same parts; a post-norm stream is followed back
through the norm of every block.
Shapes: p positions that are read, h heads, d width of the model.
Source: A Mathematical Framework for Transformer Circuits (Elhage et al. 2021).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.analysis.frozen_norms import Before, before_activation, before_linear, before_norm
from explorer.analysis.output_change import has_words, last_streams, logits_at
from explorer.analysis.residual_writes import SublayerWrite, block_writes, positions_of
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.output_tokens import last_stack_tokens
from explorer.system.cooperative import interruptible
from models.output_heads import ClassifierHead, LanguageModelHead


@dataclass(frozen=True, eq=False)
class Contributions:
    """The parts of one logit; they sum to it.

    `heads` has one (layers, h) for every kind of attention that writes into the residual
    stream, `feed_forward` is (layers,), `embedding` is by what was added there. `constant` is
    what the weights add for any input: β of the norms, and the biases of the output projection
    and of the head (those of a feed-forward layer are in its own part). `logit` is the one of
    the pass, or, at a position without logits in the pass, what the head gives for its final
    residual stream (`in_pass` says which); `difference` is how far the sum is from it.
    """

    heads: dict[str, Tensor]
    feed_forward: Tensor
    embedding: dict[str, float]
    constant: float
    logit: float
    in_pass: bool

    @property
    def total(self) -> float:
        written = sum(float(found.double().sum()) for found in self.heads.values())
        return (
            written
            + float(self.feed_forward.double().sum())
            + sum(self.embedding.values())
            + self.constant
        )

    @property
    def difference(self) -> float:
        return abs(self.total - self.logit)


def contributions(forward: ForwardPass, place: int, option: int) -> Contributions:
    """The logit of one token at a place, or of one class (`place` does not matter there).

    Cost grows with positions read × layers × d²: that of one position in a pass, or of all
    positions if a classifier takes their mean.
    """
    with torch.no_grad():
        places, shares = _read_at(forward, place)
        stack, count = last_streams(forward.config)
        layers = [block_writes(forward, stack, n, places) for n in interruptible(range(count))]
        last = forward.trace[f"{stack}.{count - 1}.resid_post"][forward.row, places]
        direction, constant = _before_head(forward, last, shares, option)
        direction, added = before_norm(forward.trace.model.last_stack.norm, last, direction)
        constant += added
        heads = {name: last.new_zeros(count, forward.config.n_heads) for name in layers[0].attended}
        feed_forward = last.new_zeros(count)
        for n in reversed(range(count)):
            if mlp := layers[n].mlp:
                direction, to_out, added = _before_residual(mlp, direction)
                feed_forward[n] = (to_out * mlp.out).sum()
                constant += added
            for name, written in reversed(list(layers[n].attended.items())):
                direction, to_out, added = _before_residual(written, direction)
                to_heads, bias = before_linear(written.attention.o_proj, to_out)
                by_head = to_heads.unflatten(-1, (-1, written.attention.d_head)).transpose(0, 1)
                heads[name][n] = (by_head * written.heads).sum((-1, -2))
                constant += added + bias
        embedding, added = _embedding(forward, places, direction)
    logit = _in_pass(forward, place, option)
    again = float(logits_at(forward.trace, place, forward.row)[option]) if logit is None else logit
    return Contributions(
        heads, feed_forward, embedding, constant + added, again, in_pass=logit is not None
    )


def _in_pass(forward: ForwardPass, place: int, option: int) -> float | None:
    """The logit of the pass; None at a position without logits in it."""
    output = forward.trace.output[forward.row]
    if not has_words(forward.config):
        return float(output[option])
    scored = range(len(last_stack_tokens(forward)))[forward.trace.read_at]
    return float(output[scored.index(place), option]) if place in scored else None


def _read_at(forward: ForwardPass, place: int) -> tuple[Tensor, Tensor]:
    """Which positions the head reads, (p,), and the weight of each, (p, 1)."""
    if has_words(forward.config):
        return torch.tensor([place]), torch.ones(1, 1)
    kept = torch.tensor(
        [i for i, t in enumerate(last_stack_tokens(forward)) if t.id != forward.config.pad_id]
    )
    some = {"first": kept[:1], "last": kept[-1:], "mean": kept}[forward.config.pooling]
    return some, torch.full((len(some), 1), 1 / len(some))


def _before_head(forward: ForwardPass, last: Tensor, shares: Tensor, option: int) -> Before:
    """The direction (p, d) that gives the logit behind the last norm, and the constant."""
    model = forward.trace.model
    normed, head = model.last_stack.norm(last), model.head
    if isinstance(head, LanguageModelHead):
        words = model.last_stack.embedding.weight if head.weight is None else head.weight
        return _before_words(head, words[option], option, normed)
    assert isinstance(head, ClassifierHead)
    pooled = (normed * shares).sum(0, keepdim=True)
    hidden = pooled if head.hidden is None else head.hidden(pooled)
    direction = head.out.weight[option : option + 1]
    constant = 0.0 if head.out.bias is None else float(head.out.bias[option])
    if head.hidden is not None:
        direction = before_activation(head.activation, hidden, direction)
        direction, added = before_linear(head.hidden, direction)
        constant += added
    return direction * shares, constant


def _before_words(head: LanguageModelHead, word: Tensor, option: int, normed: Tensor) -> Before:
    direction = word[None] * head.scale
    constant = 0.0 if head.bias is None else float(head.bias[option])
    read = head.transform(normed[None])[0]
    if head.cap is not None:
        logit = (direction * read).sum() + constant
        share = float(head.cap * (logit / head.cap).tanh() / logit) if logit else 1.0
        direction, constant = direction * share, constant * share
    if isinstance(head.transform, torch.nn.Identity):
        return direction, constant
    transform = head.transform
    projected = transform.proj(normed)
    direction, added = before_norm(transform.norm, transform.activation(projected), direction)
    direction = before_activation(transform.activation, projected, direction)
    direction, bias = before_linear(transform.proj, direction)
    return direction, constant + added + bias


def _before_residual(written: SublayerWrite, direction: Tensor) -> tuple[Tensor, Tensor, float]:
    """The direction in the stream before a block, that in what the block wrote, the constant."""
    residual = written.residual
    total = written.stream + residual.output_norm(written.out)
    direction, of_sum = before_norm(residual.sum_norm, total, direction)
    to_out, of_output = before_norm(residual.output_norm, written.out, direction)
    return direction, to_out, of_sum + of_output


def _embedding(
    forward: ForwardPass, places: Tensor, direction: Tensor
) -> tuple[dict[str, float], float]:
    """The parts of the token, its position and its segment, and the constant of their norm."""
    stack = forward.trace.model.last_stack
    tokens = [last_stack_tokens(forward)[int(place)] for place in places]
    here = positions_of(forward, last_streams(forward.config)[0])[places]
    added = {"token": stack.embedding(torch.tensor([t.id for t in tokens])) * stack.embedding_scale}
    if (position := stack.positions.embed(here)) is not None:
        added["position"] = position
    if stack.segments is not None:
        most = stack.segments.num_embeddings - 1
        added["sentence"] = stack.segments(torch.tensor([min(t.segment, most) for t in tokens]))
    whole = torch.stack(list(added.values())).sum(0)
    direction, constant = before_norm(stack.embedding_norm, whole, direction)
    return {name: float((direction * each).sum()) for name, each in added.items()}, constant
