"""One model and what it reads, so that a wrong and a right run are measured alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from explorer.catalog.opened_model import Opened
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of, segments_of
from explorer.views.museum.museum_taps import Cut, Pieces, Unseeing
from models import Transformer
from models.losses import IGNORE
from models.tap import NO_TAP, Tap
from models.transformer import EVERYWHERE, evaluating

NOWHERE = slice(0, 0)

Look = tuple[str, int, int]
"""A part, a layer and a head."""


@dataclass(frozen=True, eq=False)
class Case:
    """A model with its inputs; `labels` are what the right model answers, or what comes next.

    `ids` (1, s) is what the first stack reads, `target` (1, t) what a decoder beside an
    encoder reads, `segments` (1, s) which of two texts a token belongs to, where the model
    tells them apart; `forward` names all of them. `look` is the attention that is drawn:
    its part, layer and head.
    """

    model: Transformer
    ids: Tensor
    target: Tensor | None
    segments: Tensor | None
    labels: Tensor | None
    forward: ForwardPass
    opened: Opened
    look: Look

    @property
    def written(self) -> Tensor:
        """What the last stack reads."""
        return self.ids if self.target is None else self.target

    def of(self, model: Transformer) -> Case:
        """The same inputs for another model."""
        return replace(self, model=model)

    def passed(
        self,
        ids: Tensor | None = None,
        target: Tensor | None = None,
        tap: Tap = NO_TAP,
        keep: Tensor | None = None,
        read_at: slice = EVERYWHERE,
    ) -> Tensor:
        """What the model gives for these inputs, or for others in their place."""
        ids, target = self.ids if ids is None else ids, self.target if target is None else target
        segments = self.segments
        if segments is not None:  # what was put behind the texts belongs to the first
            segments = pad(segments, (0, ids.shape[1] - segments.shape[1]))
        inputs = (ids,) if target is None else (ids, target)
        return self.model(*inputs, segments=segments, tap=tap, keep=keep, read_at=read_at)

    def logits(
        self,
        ids: Tensor | None = None,
        target: Tensor | None = None,
        read_at: slice = EVERYWHERE,
    ) -> Tensor:
        """The same without gradients; a language model scores only the positions `read_at`."""
        with evaluating(self.model):
            return self.passed(ids, target, read_at=read_at)

    def stream(
        self,
        ids: Tensor | None = None,
        target: Tensor | None = None,
        is_silenced: bool = False,
    ) -> Tensor:
        """What the head reads (1, t, d); silenced, nothing comes of looking at the source."""
        found: dict[str, Tensor] = {}
        site = f"{self.last}.final"
        tap: Tap = Pieces({site: lambda value: value}, found)
        with evaluating(self.model):
            tap = Unseeing(tap) if is_silenced else tap
            self.passed(ids, target, tap, read_at=NOWHERE)
        return found[site]

    def seen(
        self, cuts: Mapping[str, Cut], keep: Tensor | None = None, ids: Tensor | None = None
    ) -> dict[str, Tensor]:
        """A piece of each of these values in one pass; what is shown to nobody is not there."""
        found: dict[str, Tensor] = {}
        with evaluating(self.model):
            self.passed(ids, tap=Pieces(cuts, found), keep=keep, read_at=NOWHERE)
        return found

    @property
    def first(self) -> str:
        """The stack that reads first."""
        return self.model.config.stacks[0]

    @property
    def last(self) -> str:
        return self.model.config.stacks[-1]

    def named(self, ids: Sequence[int]) -> str:
        """What these ids stand for, readable, with spaces between."""
        return " ".join(self.opened.tokenizer.token(i).label for i in ids)


def case_of(opened: Opened, forward: ForwardPass, look: Look) -> Case:
    """The right run: the opened model over the text it read."""
    ids = ids_of([forward.tokens])
    target = ids_of([forward.target]) if opened.config.kind == "encoder-decoder" else None
    labels = _labels_of(opened, forward, ids)
    segments = segments_of(opened, [forward.tokens])
    return Case(opened.model, ids, target, segments, labels, forward, opened, look)


def _labels_of(opened: Opened, forward: ForwardPass, ids: Tensor) -> Tensor | None:
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
