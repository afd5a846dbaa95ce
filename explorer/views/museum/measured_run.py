"""One model and its inputs, so that a wrong and a right model are measured in the same way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from explorer.catalog.open_model import OpenModel
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of, segments_of
from models import Transformer
from models.losses import IGNORE, cross_entropy
from models.tap import NO_TAP, Tap
from models.transformer import EVERYWHERE, evaluating

NOWHERE = slice(0, 0)
AT_ONCE = 64
"""Positions whose whole vocabulary is scored together."""
FURTHER = 3
"""A replaced token is so many ids further on in the vocabulary."""

HeadPlace = tuple[str, int, int]
"""A part, a layer and a head."""
Cut = Callable[[Tensor], Tensor]
"""The piece of a recorded value that is kept, such as one head."""


def head_map(head: int) -> Cut:
    """The map of one head (q, k); empty where the run has fewer heads."""
    return lambda weights: weights[0, head] if head < weights.shape[1] else weights[0, 0, :0]


class PieceRecorder(Tap):
    """Keeps in `found` a piece of each value that is named, and nothing else."""

    def __init__(self, cuts: Mapping[str, Cut], found: dict[str, Tensor], prefix: str = "") -> None:
        self._cuts, self._found, self._prefix = cuts, found, prefix

    def at(self, scope: str) -> "PieceRecorder":
        return PieceRecorder(self._cuts, self._found, f"{self._prefix}{scope}.")

    def wants(self, name: str) -> bool:
        return self._prefix + name in self._cuts

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if cut := self._cuts.get(self._prefix + name):
            self._found[self._prefix + name] = cut(value).clone()
        return value


class EmbeddingLeaves(Tap):
    """Makes the embeddings leaves, so that the loss has a gradient at every token.

    `leaves`, and the final residual streams of the stacks in `finals`, are kept by site.
    """

    def __init__(self, parent: "EmbeddingLeaves | None" = None, prefix: str = "") -> None:
        self.leaves: dict[str, Tensor] = parent.leaves if parent else {}
        self.finals: dict[str, Tensor] = parent.finals if parent else {}
        self._prefix = prefix

    def at(self, scope: str) -> "EmbeddingLeaves":
        return EmbeddingLeaves(self, f"{self._prefix}{scope}.")

    def __call__(self, name: str, value: Tensor) -> Tensor:
        site = self._prefix + name
        if name == "embed":
            value = self.leaves[site] = value.detach().requires_grad_()
        elif name == "final":
            self.finals[site] = value
        return value


class AblatedCrossAttention(Tap):
    """Sets the output of cross-attention to zero; `beyond` gets every value after that."""

    def __init__(self, beyond: Tap, inside: bool = False) -> None:
        self._beyond, self._inside = beyond, inside

    def at(self, scope: str) -> "AblatedCrossAttention":
        return AblatedCrossAttention(self._beyond.at(scope), scope == "cross_attn")

    def wants(self, name: str) -> bool:
        return self._beyond.wants(name)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if self._inside and name == "out":
            value = torch.zeros_like(value)
        return self._beyond(name, value)


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """A model with its inputs; `labels` are the right model's answer, or the next tokens.

    `ids` (1, s) is what the first stack reads, `target` (1, t) what a decoder after an
    encoder reads, `segments` (1, s) the segment of each token, where the model has segments;
    `forward` has the words for all of them. `head` is the head whose map is drawn.
    """

    model: Transformer
    ids: Tensor
    target: Tensor | None
    segments: Tensor | None
    labels: Tensor | None
    forward: ForwardPass
    opened: OpenModel
    head: HeadPlace

    @property
    def last_ids(self) -> Tensor:
        """What the last stack reads."""
        return self.ids if self.target is None else self.target

    @property
    def first_stack(self) -> str:
        return self.model.config.stacks[0]

    @property
    def last_stack(self) -> str:
        return self.model.config.stacks[-1]

    def with_model(self, model: Transformer) -> "MeasuredRun":
        """The same inputs for another model."""
        return replace(self, model=model)

    def output(
        self,
        ids: Tensor | None = None,
        target: Tensor | None = None,
        tap: Tap = NO_TAP,
        keep: Tensor | None = None,
        read_at: slice = EVERYWHERE,
    ) -> Tensor:
        """The model's output for these inputs, or for others in their place."""
        ids, target = self.ids if ids is None else ids, self.target if target is None else target
        segments = self.segments
        if segments is not None:  # padding belongs to the first segment
            segments = pad(segments, (0, ids.shape[1] - segments.shape[1]))
        inputs = (ids,) if target is None else (ids, target)
        return self.model(*inputs, segments=segments, tap=tap, keep=keep, read_at=read_at)

    def logits(
        self,
        ids: Tensor | None = None,
        target: Tensor | None = None,
        read_at: slice = EVERYWHERE,
    ) -> Tensor:
        """The output without gradients; a language model scores only the positions `read_at`."""
        with evaluating(self.model):
            return self.output(ids, target, read_at=read_at)

    def recorded(
        self, cuts: Mapping[str, Cut], keep: Tensor | None = None, ids: Tensor | None = None
    ) -> dict[str, Tensor]:
        """A piece of each of these values in one pass; a value without a site is missing."""
        found: dict[str, Tensor] = {}
        with evaluating(self.model):
            self.output(ids, tap=PieceRecorder(cuts, found), keep=keep, read_at=NOWHERE)
        return found

    def final_stream(
        self, ids: Tensor | None = None, target: Tensor | None = None, is_ablated: bool = False
    ) -> Tensor:
        """The residual stream that the head reads (1, t, d), also with cross-attention ablated."""
        found: dict[str, Tensor] = {}
        site = f"{self.last_stack}.final"
        tap: Tap = PieceRecorder({site: lambda value: value}, found)
        tap = AblatedCrossAttention(tap) if is_ablated else tap
        with evaluating(self.model):
            self.output(ids, target, tap, read_at=NOWHERE)
        return found[site]

    def replaced_tokens(self, ids: Tensor, where: slice) -> Tensor:
        """`ids` with other tokens in some places: the third id on, or the next after padding.

        With four words or fewer the next id: no token ever stays, unless padding is the only
        other one.
        """
        words, pad_id = self.opened.config.vocab_size, self.opened.config.pad_id
        new = (ids[:, where] + (FURTHER if words > FURTHER + 1 else 1)) % words
        if pad_id is not None:
            new = new.where(new != pad_id, (pad_id + 1) % words)
        changed = ids.clone()
        changed[:, where] = new
        return changed

    def logit_change(
        self,
        ids: Tensor | None = None,
        target: Tensor | None = None,
        until: int | None = None,
        is_ablated: bool = False,
    ) -> float:
        """The largest change of a logit before position `until` when the model reads these.

        A classifier has one answer for the whole text, whatever `until` is. The vocabulary is
        scored at a few positions at a time.
        """
        if self.model.config.head == "classifier":
            return float((self.logits(ids, target) - self.logits()).abs().max())
        before = self.final_stream(is_ablated=is_ablated)[:, :until]
        after = self.final_stream(ids, target, is_ablated)[:, :until]
        most = torch.zeros(())
        with evaluating(self.model):
            for start in range(0, before.shape[1], AT_ONCE):
                one, two = (self.model.read(x[:, start : start + AT_ONCE]) for x in (before, after))
                most = torch.maximum(most, (two - one).abs().max())
        return float(most)

    def stream_change(self, ids: Tensor | None, target: Tensor | None, until: int) -> float:
        """The largest change of the final stream before position `until` with these inputs."""
        before, after = self.final_stream()[:, :until], self.final_stream(ids, target)[:, :until]
        return float((after - before).abs().max())

    def loss_and_gradient(self, final: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The loss at a final stream (1, t, d), and its gradient there."""
        nats, gradient = torch.zeros(()), torch.zeros_like(final)
        counted = (labels != IGNORE).sum()
        for start in range(0, final.shape[1], AT_ONCE):
            here = slice(start, start + AT_ONCE)
            x = final[:, here].detach().requires_grad_()
            some = int((labels[:, here] != IGNORE).sum())
            if some:
                part = cross_entropy(self.model.read(x), labels[:, here]) * some / counted
                (gradient[:, here],) = torch.autograd.grad(part, x)
                nats = nats + part.detach()
        return nats, gradient

    def text_of(self, ids: Sequence[int]) -> str:
        """The labels of these ids, with spaces between."""
        return " ".join(self.opened.tokenizer.token(i).label for i in ids)


def right_run(opened: OpenModel, forward: ForwardPass, head: HeadPlace) -> "MeasuredRun":
    """The opened model over the text of its forward pass."""
    ids = ids_of([forward.tokens])
    target = ids_of([forward.target]) if opened.config.kind == "encoder-decoder" else None
    labels = _labels(opened, forward, ids)
    segments = segments_of(opened, [forward.tokens])
    return MeasuredRun(opened.model, ids, target, segments, labels, forward, opened, head)


def _labels(opened: OpenModel, forward: ForwardPass, ids: Tensor) -> Tensor | None:
    kind, head = opened.config.kind, opened.config.head
    if head == "none":
        return None
    if head == "classifier":
        return forward.trace.output[forward.row].argmax(-1)[None]
    if kind == "encoder-decoder":
        return ids_of([forward.written])
    if kind == "decoder":
        return torch.cat((ids[:, 1:], torch.full((1, 1), IGNORE)), 1)
    return ids
