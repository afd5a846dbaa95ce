"""What every head and block adds to one logit directly, past no other block.

The stream that the head of the model reads is a sum: the embedding, and what each head and
each feed-forward layer wrote. What follows them, norms and the head, is linear as this pass
had it (`explorer.analysis.frozen`), so the logit is a sum over the same parts; post-norm
streams are followed back through the norm of every block. Only the positions that the logit
is read at are computed again, from the kept q, k, v and streams.
Shapes: p positions that are read, h heads, d width of the model, w width of one head.
Source: A Mathematical Framework for Transformer Circuits (Elhage et al. 2021).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.changes import has_words, last_streams, tokens_read
from explorer.analysis.frozen import Before, before_activation, before_linear, before_norm
from explorer.reading import Reading
from models.attention import MultiHeadAttention, attention_scores, attention_weights, repeat_groups
from models.block import Block, Residual
from models.heads import ClassifierHead, LanguageModelHead


@dataclass(frozen=True, eq=False)
class Contributions:
    """The parts of one logit; they sum to it.

    `heads` has one (layers, h) for every kind of attention that writes into the stream,
    `feed_forward` is (layers,), `embedding` is by what was added there. `constant` is what
    the weights add whatever is read: every β and bias that no head wrote. `logit` is the
    pass's own, `difference` how far the sum is from it.
    """

    heads: dict[str, Tensor]
    feed_forward: Tensor
    embedding: dict[str, float]
    constant: float
    logit: float

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


@dataclass(frozen=True, eq=False)
class Written:
    """What one layer of attention wrote at the positions: per head (h, p, w), and in all (p, d)."""

    attention: MultiHeadAttention
    residual: Residual
    stream: Tensor
    heads: Tensor
    out: Tensor


@dataclass(frozen=True, eq=False)
class Layer:
    """One block at the positions: its attentions by name, then its feed-forward, if it has one."""

    written: dict[str, Written]
    mlp: tuple[Residual, Tensor, Tensor] | None  # its residual, the stream before it, what it wrote


def contributions(reading: Reading, place: int, option: int) -> Contributions:
    """The logit of one token at a place, or of one class (`place` does not matter there).

    Cost grows with positions read × layers × d²: one position's share of a pass, except
    where a classifier takes the mean of all positions.
    """
    with torch.no_grad():
        places, shares = _read_at(reading, place)
        stack, count = last_streams(reading.config)
        blocks = reading.trace.model.last_stack.blocks
        layers = [_layer(reading, stack, n, blocks[n], places) for n in range(count)]
        last = reading.trace[f"{stack}.{count - 1}.resid_post"][reading.row, places]
        logit, direction, constant = _before_head(reading, last, shares, option)
        direction, added = before_norm(reading.trace.model.last_stack.norm, last, direction)
        constant += added
        heads = {name: last.new_zeros(count, reading.config.n_heads) for name in layers[0].written}
        feed_forward = last.new_zeros(count)
        for n in reversed(range(count)):
            if mlp := layers[n].mlp:
                residual, stream, out = mlp
                direction, to_out, added = _before_residual(residual, stream, out, direction)
                feed_forward[n] = (to_out * out).sum()
                constant += added
            for name, written in reversed(list(layers[n].written.items())):
                direction, to_out, added = _before_residual(
                    written.residual, written.stream, written.out, direction
                )
                to_heads, bias = before_linear(written.attention.o_proj, to_out)
                by_head = to_heads.unflatten(-1, (-1, written.attention.d_head)).transpose(0, 1)
                heads[name][n] = (by_head * written.heads).sum((-1, -2))
                constant += added + bias
        embedding, added = _embedding(reading, places, direction)
    return Contributions(heads, feed_forward, embedding, constant + added, logit)


def _read_at(reading: Reading, place: int) -> tuple[Tensor, Tensor]:
    """Which positions the head reads, (p,), and each one's share, (p, 1)."""
    if has_words(reading.config):
        return torch.tensor([place]), torch.ones(1, 1)
    kept = torch.tensor(
        [i for i, t in enumerate(tokens_read(reading)) if t.id != reading.config.pad_id]
    )
    some = {"first": kept[:1], "last": kept[-1:], "mean": kept}[reading.config.pooling]
    return some, torch.full((len(some), 1), 1 / len(some))


def _layer(reading: Reading, stack: str, n: int, block: Any, places: Tensor) -> Layer:
    """The block at these positions, from the stream that enters it."""
    before = stream = reading.trace[f"{stack}.{n}.resid_pre"][reading.row, places]
    written: dict[str, Written] = {}
    for name, attention, residual in _attentions(block):
        heads = _heads(reading, f"{stack}.{n}.{name}", places)
        out = attention.o_proj(heads.transpose(0, 1).flatten(1))
        written[f"{stack}.{name}"] = Written(attention, residual, stream, heads, out)
        stream = residual(stream[None], lambda _, out=out: out[None])[0]
    if not block.has_mlp:
        return Layer(written, None)
    residual = block.mlp_residual
    reads = before if block.parallel else stream
    out = block.mlp(reads[None] if residual.where == "post" else residual.norm(reads[None]))[0]
    return Layer(written, (residual, stream, out))


def _attentions(block: Block) -> Iterator[tuple[str, MultiHeadAttention, Residual]]:
    yield "self_attn", block.self_attn, block.self_residual
    if block.has_cross:
        yield "cross_attn", block.cross_attn, block.cross_residual


def _heads(reading: Reading, at: str, places: Tensor) -> Tensor:
    """What every head gives at these positions, (h, p, w): only their rows are weighed."""
    trace, row, config = reading.trace, reading.row, reading.config
    q, k, v = (trace[f"{at}.{name}"][row : row + 1] for name in "qkv")
    mask, bias = trace.mask(at), None
    mask = mask.expand(max(row + 1, len(mask)), -1, -1, -1)[row : row + 1, :, places]
    if at.endswith("self_attn"):
        stack = at.split(".")[0]
        here = trace[f"{stack}.positions"]
        here = here[row] if here.dim() == 2 else here
        bias = getattr(trace.model, stack).positions.bias(here[places], here)
    q = q[:, :, places]
    scores = attention_scores(
        q, repeat_groups(k, config.n_heads), config.scale, config.attention_cap
    )
    weights = attention_weights(scores, mask, None if bias is None else bias.to(scores.dtype))
    return (weights @ repeat_groups(v, config.n_heads))[0]


def _before_head(
    reading: Reading, last: Tensor, shares: Tensor, option: int
) -> tuple[float, Tensor, float]:
    """The logit, the direction (p, d) that gives it behind the last norm, and the constant."""
    model = reading.trace.model
    normed, head = model.last_stack.norm(last), model.head
    if isinstance(head, LanguageModelHead):
        words = model.last_stack.embedding.weight if head.weight is None else head.weight
        direction, constant = _before_words(head, words[option], option, normed)
        return _logit_of_word(model, normed, option), direction, constant
    assert isinstance(head, ClassifierHead)
    pooled = (normed * shares).sum(0, keepdim=True)
    hidden = pooled if head.hidden is None else head.hidden(pooled)
    direction = head.out.weight[option : option + 1]
    constant = 0.0 if head.out.bias is None else float(head.out.bias[option])
    if head.hidden is not None:
        direction = before_activation(head.activation, hidden, direction)
        direction, added = before_linear(head.hidden, direction)
        constant += added
    return float(reading.trace.output[reading.row, option]), direction * shares, constant


def _logit_of_word(model: torch.nn.Module, normed: Tensor, option: int) -> float:
    return float(model.read(normed[None])[0, 0, option])  # type: ignore[operator]


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


def _before_residual(
    residual: Residual, stream: Tensor, out: Tensor, direction: Tensor
) -> tuple[Tensor, Tensor, float]:
    """The direction in the stream before a block, that in what the block wrote, the constant."""
    if residual.where == "post":
        direction, added = before_norm(residual.norm, stream + out, direction)
        return direction, direction, added
    to_out, added = before_norm(residual.out_norm, out, direction)
    return direction, to_out, added


def _embedding(
    reading: Reading, places: Tensor, direction: Tensor
) -> tuple[dict[str, float], float]:
    """What the token, its position and its sentence give, and the constant of their norm."""
    stack = reading.trace.model.last_stack
    tokens = [tokens_read(reading)[int(place)] for place in places]
    here = reading.trace[f"{last_streams(reading.config)[0]}.positions"]
    here = (here[reading.row] if here.dim() == 2 else here)[places]
    added = {"token": stack.embedding(torch.tensor([t.id for t in tokens])) * stack.embedding_scale}
    if (position := stack.positions.embed(here)) is not None:
        added["position"] = position
    if stack.segments is not None:
        most = stack.segments.num_embeddings - 1
        added["sentence"] = stack.segments(torch.tensor([min(t.segment, most) for t in tokens]))
    whole = torch.stack(list(added.values())).sum(0)
    direction, constant = before_norm(stack.embedding_norm, whole, direction)
    return {name: float((direction * each).sum()) for name, each in added.items()}, constant
