"""One model and its inputs, so that a wrong and a right model are measured in the same way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from explorer.catalog.opened_model import OpenModel
from explorer.catalog.pass_budget import BoundedTransformer
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of, segments_of
from models import Transformer
from models.gradients import Gradients, gradients
from models.interventions import Edit
from models.losses import IGNORE, cross_entropy, label_smoothing
from models.tap import NO_TAP, Tap
from models.trace import RecordingTap
from models.transformer import EVERYWHERE, evaluating

NOWHERE = slice(0, 0)
AT_ONCE = 64
"""Positions whose logits are computed together."""
FURTHER = 3
"""A token is replaced by the one this many IDs further on."""

HeadPlace = tuple[str, int, int]
"""A part, a layer and a head."""


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """A model with its inputs; `labels` are the right model's answer, or the next tokens.

    `ids` (1, s) is what the first stack reads, `target` (1, t) what the decoder of an
    encoder-decoder reads, `segments` (1, s) the segment of each token, if the model has segments;
    `forward` has the labels of all of them. `head` is the head whose map is drawn.
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
        """The model's output for these inputs, or for others in their place, without gradients.

        A language model scores only the positions `read_at`.
        """
        ids, target = self.ids if ids is None else ids, self.target if target is None else target
        segments = self.segments
        if segments is not None:  # padding belongs to the first segment
            segments = pad(segments, (0, ids.shape[1] - segments.shape[1]))
        inputs = (ids,) if target is None else (ids, target)
        with evaluating(self.model):
            return self.model(*inputs, segments=segments, tap=tap, keep=keep, read_at=read_at)

    def recorded(
        self,
        *sites: str,
        ids: Tensor | None = None,
        target: Tensor | None = None,
        keep: Tensor | None = None,
        edits: Sequence[Edit] = (),
    ) -> dict[str, Tensor]:
        """The values at these sites in one pass, without those that a mistake hides."""
        tap = RecordingTap(sites, edits)
        self.output(ids, target, tap, keep, read_at=NOWHERE)
        return tap.values

    def final_stream(
        self, ids: Tensor | None = None, target: Tensor | None = None, edits: Sequence[Edit] = ()
    ) -> Tensor:
        """The residual stream that the head reads (1, t, d)."""
        site = f"{self.last_stack}.final"
        return self.recorded(site, ids=ids, target=target, edits=edits)[site]

    def replaced_tokens(self, ids: Tensor, where: slice) -> Tensor:
        """`ids` with other tokens at some positions: the third ID on, or the one after padding.

        With a vocabulary of four or fewer, the next ID. No token stays the same, unless padding is
        the only other one.
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
        edits: Sequence[Edit] = (),
    ) -> float:
        """The largest change of a logit before position `until` when the model reads these inputs.

        A classifier has one answer for the whole text, whatever `until` is. Logits are computed
        for a few positions at a time.
        """
        if self.model.config.head == "classifier":
            return float((self.output(ids, target) - self.output()).abs().max())
        before = self.final_stream(edits=edits)[:, :until].split(AT_ONCE, 1)
        after = self.final_stream(ids, target, edits)[:, :until].split(AT_ONCE, 1)
        with evaluating(self.model):
            changes = [
                (self.model.read(new) - self.model.read(old)).abs().max()
                for new, old in zip(after, before, strict=True)
            ]
        return float(torch.stack(changes).max())

    def loss_gradients(self) -> Gradients:
        """The loss, and its gradient at the embeddings of every stack."""
        inputs = (self.ids,) if self.target is None else (self.ids, self.target)
        model = self.model
        if model.config.head != "classifier":  # without its head, it returns the final stream
            model = BoundedTransformer(model)
            model.head = None
        return gradients(
            model,
            *inputs,
            of=self.loss_of,
            sites=("*.embed",),
            read_at=NOWHERE,
            segments=self.segments,
        )

    def loss_of(self, output: Tensor) -> Tensor:
        """The loss of a classifier's output, or of a final stream (1, t, d).

        That of a stream is computed for a few positions at a time.
        """
        assert self.labels is not None
        if self.model.config.head == "classifier":
            return cross_entropy(output, self.labels)
        n_labels = (self.labels != IGNORE).sum()

        def share(x: Tensor, labels: Tensor) -> Tensor:
            return label_smoothing(self.model.read(x), labels, alpha=0.0, n_labels=n_labels)

        parts = zip(output.split(AT_ONCE, 1), self.labels.split(AT_ONCE, 1), strict=True)
        shares = [checkpoint(share, *part, use_reentrant=False) for part in parts]
        return torch.stack(shares).sum()

    def names_of(self, ids: Tensor) -> tuple[str, ...]:
        """The labels of these token IDs (t)."""
        return tuple(self.opened.tokenizer.token(i).label for i in ids.tolist())


def right_run(opened: OpenModel, forward: ForwardPass, head: HeadPlace) -> MeasuredRun:
    """The opened model over the text of its forward pass."""
    ids = ids_of([forward.tokens])
    target = ids_of([forward.target]) if opened.config.kind == "encoder-decoder" else None
    labels = _labels(opened, forward, ids)
    segments = segments_of(opened, [forward.tokens])
    return MeasuredRun(opened.model, ids, target, segments, labels, forward, opened, head)


def _labels(opened: OpenModel, forward: ForwardPass, ids: Tensor) -> Tensor | None:
    kind, head = opened.config.kind, opened.config.head
    if head == "none" or opened.config.score_function != "softmax":
        return None
    if head == "classifier":
        return forward.trace.output[forward.row].argmax(-1)[None]
    if kind == "encoder-decoder":
        return ids_of([forward.output_tokens])
    if kind == "decoder":
        return torch.cat((ids[:, 1:], torch.full((1, 1), IGNORE)), 1)
    return ids
