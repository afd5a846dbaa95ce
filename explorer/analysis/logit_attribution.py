"""Direct logit attribution: what every head and block adds to one logit without other blocks.

The residual stream that the output head reads is the sum of the embedding and of what each head
and each feed-forward layer wrote. With frozen norms (`frozen_scales`) everything after them is
linear, so the logit is a sum over the same parts, each times the gradient of the logit there.
Shapes: p positions that the output head reads, h heads, n neurons, d width of the model.
Source: A Mathematical Framework for Transformer Circuits (Elhage et al. 2021).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.analysis.output_change import has_words, last_streams, logits_at
from explorer.analysis.residual_writes import block_writes, positions_of
from explorer.inference.forward_pass import ForwardPass
from explorer.system.cooperative import interruptible
from models.frozen_scales import (
    Frozen,
    freeze_classes,
    freeze_norm,
    freeze_words,
    is_plain_sum,
    residual_without_scale,
)
from models.output_heads import ClassifierHead, LanguageModelHead


def direct_logits(
    forward: ForwardPass,
    layer: int,
    place: int,
    write: Tensor,
    options: Tensor | None = None,
    *,
    by_mlp: bool = False,
) -> Tensor:
    """(n, options): the direct logits of what attention in this layer writes at a place, (n, d).

    With `by_mlp` the feed-forward layer writes it. For a last stack with a head over tokens.
    `options` are token IDs, by default all. Costs n × options × d.
    """
    model = forward.trace.model
    stack, count = last_streams(forward.config)
    with torch.no_grad():
        for frozen in _later(forward, layer, place, by_mlp):
            write = frozen.linear(write)
        last = forward.trace[f"{stack}.{count - 1}.resid_post"][forward.row, [place]]
        norm, head = model.last_stack.norm, model.head
        assert isinstance(head, LanguageModelHead)
        words: Tensor = model.last_stack.embedding.weight
        logits = freeze_norm(norm, last).then(freeze_words(head, norm(last), words, options))
        return logits.linear(write)


def _later(forward: ForwardPass, layer: int, place: int, by_mlp: bool) -> Iterator[Frozen]:
    """The frozen norms and factors that change what this sub-layer wrote, in order.

    It yields nothing where the residual stream is a plain sum.
    """
    model: Any = forward.trace.model
    stack, blocks = last_streams(forward.config)[0], model.last_stack.blocks
    if all(is_plain_sum(blocks[n].self_residual) for n in range(layer, len(blocks))):
        return
    for n in range(layer, len(blocks)):
        block = block_writes(forward, stack, n, torch.tensor([place]))
        parts = [*block.attentions.values(), *([block.mlp] if block.mlp else [])]
        first = len(parts) - 1 if by_mlp and n == layer else 0
        for at, part in enumerate(parts[first:], first):
            if (n, at) == (layer, first):
                yield part.frozen.write
            yield part.frozen.summed


EMBEDDED = -1
"""The layer of the embedding."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """The parts of one logit; they sum to it.

    `heads` has one (layers, h) for every kind of attention that writes into the residual
    stream, `feed_forward` is (layers,), and `embedding` has one number for each of its terms.
    `constant` is what the weights add for any input: β of the norms, and the biases of the output
    projection and of the output head (those of a feed-forward layer are in its own part). `logit`
    is that of the pass; at a position without logits in the pass (`in_pass` is False) it is
    computed from the final residual stream. `difference` is the error of the sum.
    """

    heads: dict[str, Tensor]
    feed_forward: Tensor
    embedding: dict[str, float]
    constant: float
    logit: float
    in_pass: bool

    @property
    def total(self) -> float:
        return (
            sum(float(heads.double().sum()) for heads in self.heads.values())
            + float(self.feed_forward.double().sum())
            + sum(self.embedding.values())
            + self.constant
        )

    @property
    def difference(self) -> float:
        return abs(self.total - self.logit)


def contributions(forward: ForwardPass, place: int, option: int) -> Contributions:
    """The logit of one token at a place, or of one class (which needs no `place`).

    Cost grows with p × layers × d²: p is 1, or all positions if a classifier takes their mean.
    """
    with torch.no_grad():
        places, shares = positions_read(forward, place)
        stack, count = last_streams(forward.config)
        layers = [block_writes(forward, stack, n, places) for n in interruptible(range(count))]
        embedded = embedded_terms(forward, stack, places)
        to_output = _frozen_output(forward, places, shares, option)
    parts = {(EMBEDDED, name): value for name, value in embedded.items()}
    for n, block in enumerate(layers):
        parts |= {(n, name): write.heads for name, write in block.attentions.items()}
        parts |= {(n, "mlp"): block.mlp.out} if block.mlp else {}
    nothing = {key: torch.zeros_like(value, requires_grad=True) for key, value in parts.items()}
    with torch.enable_grad():
        whole = torch.stack(list(embedded.values())).sum(0)
        of_sum = freeze_norm(forward.trace.model.last_stack.embedding_norm, whole)
        x = of_sum(torch.stack([nothing[EMBEDDED, name] for name in embedded]).sum(0))
        for n, block in enumerate(layers):
            for name, write in block.attentions.items():
                out = write.attention.o_proj(nothing[n, name].transpose(0, 1).flatten(1))
                x = write.frozen(x, out)
            if block.mlp:
                x = block.mlp.frozen(x, nothing[n, "mlp"])
        constant = to_output(x)
    slopes = torch.autograd.grad(constant, list(nothing.values()))
    constant = constant.detach()
    terms = {key: slope * parts[key] for key, slope in zip(parts, slopes, strict=True)}
    heads = {
        name: torch.stack([terms[n, name].sum((-1, -2)) for n in range(count)])
        for name in layers[0].attentions
    }
    no_mlp = embedded["token"].new_zeros(())
    feed_forward = torch.stack([terms.get((n, "mlp"), no_mlp).sum() for n in range(count)])
    embedding = {name: float(terms[EMBEDDED, name].sum()) for name in embedded}
    output, logit = forward.trace.output[forward.row], None
    if not has_words(forward.config):
        logit = float(output[option])
    elif place in (scored := range(len(forward.last_stack_tokens))[forward.trace.read_at]):
        logit = float(output[scored.index(place), option])
    again = float(logits_at(forward.trace, place, forward.row)[option]) if logit is None else logit
    return Contributions(
        heads, feed_forward, embedding, float(constant), again, in_pass=logit is not None
    )


def positions_read(forward: ForwardPass, place: int) -> tuple[Tensor, Tensor]:
    """The positions that the output head reads, (p,), and the weight of each, (p, 1)."""
    if has_words(forward.config):
        return torch.tensor([place]), torch.ones(1, 1)
    places = torch.tensor(
        [i for i, t in enumerate(forward.last_stack_tokens) if t.id != forward.config.pad_id]
    )
    places = {"first": places[:1], "last": places[-1:], "mean": places}[forward.config.pooling]
    return places, torch.full((len(places), 1), 1 / len(places))


def _frozen_output(
    forward: ForwardPass, places: Tensor, shares: Tensor, option: int
) -> Callable[[Tensor], Tensor]:
    """The map from the last residual stream at these positions, (p, d), to the logit."""
    (stack, count), model = last_streams(forward.config), forward.trace.model
    last = forward.trace[f"{stack}.{count - 1}.resid_post"][forward.row, places]
    norm, head = freeze_norm(model.last_stack.norm, last), model.head
    if isinstance(head, LanguageModelHead):
        words, ids = model.last_stack.embedding.weight, torch.tensor([option])
        logits = norm.then(freeze_words(head, norm(last), words, ids))
        return lambda x: logits(x).sum()
    assert isinstance(head, ClassifierHead)
    classes = freeze_classes(head, (norm(last) * shares).sum(0))
    return lambda x: classes((norm(x) * shares).sum(0))[option]


def embedded_terms(forward: ForwardPass, name: str, places: Tensor) -> dict[str, Tensor]:
    """The terms of a stack's embedding, (p, d) each: the token, its position and its segment."""
    stack = getattr(forward.trace.model, name)
    read = forward.source if name == "encoder" else forward.target
    tokens = [read[int(place)] for place in places]
    here = positions_of(forward, name)[places]
    added = {"token": stack.embedding(torch.tensor([t.id for t in tokens])) * stack.embedding_scale}
    if (position := stack.positions.embed(here)) is not None:
        added["position"] = position
    if stack.segments is not None:
        most = stack.segments.num_embeddings - 1
        added["sentence"] = stack.segments(torch.tensor([min(t.segment, most) for t in tokens]))
    return added


def neuron_strengths(model: Any, stack: str, layer: int, activations: Tensor) -> Tensor:
    """|activation| × norm of the row that it writes, (…, n), of activations (…, n).

    A norm of the layer's output has its gain in the row; its scale, equal for all, is left out.
    """
    block = getattr(model, stack).blocks[layer]
    write = residual_without_scale(block.mlp_residual)[0]
    with torch.no_grad():
        return activations.abs() * write(block.mlp.down_proj.weight.mT).norm(dim=-1)


def promoted_logits(
    forward: ForwardPass, layer: int, place: int, neurons: Tensor, activations: Tensor
) -> Tensor:
    """The direct logits of what these neurons (k,) of the last stack write, (k, vocabulary).

    Source: Transformer Feed-Forward Layers Build Predictions by Promoting Concepts in the
    Vocabulary Space (Geva et al. 2022), section 3.
    """
    block: Any = forward.trace.model.last_stack.blocks[layer]
    rows = block.mlp.down_proj.weight.detach().mT[neurons]
    return direct_logits(forward, layer, place, activations[neurons, None] * rows, by_mlp=True)
