"""One model and what it reads, so that a wrong and a right run are measured alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from explorer.library import Opened
from explorer.reading import Reading
from models import Transformer, trace
from models.losses import IGNORE
from models.tap import NO_TAP, Tap
from models.transformer import evaluating

Look = tuple[str, int, int]
"""A part, a layer and a head."""


@dataclass(frozen=True, eq=False)
class Case:
    """A model with its inputs; `labels` are what the right model answers, or what comes next.

    `ids` (1, s) is what the first stack reads, `target` (1, t) what a decoder beside an
    encoder reads; `reading` names all of them. `look` is the attention that is drawn: its
    part, layer and head.
    """

    model: Transformer
    ids: Tensor
    target: Tensor | None
    labels: Tensor | None
    reading: Reading
    opened: Opened
    look: Look

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (self.ids,) if self.target is None else (self.ids, self.target)

    def of(self, model: Transformer) -> Case:
        """The same inputs for another model."""
        return replace(self, model=model)

    def logits(
        self, ids: Tensor | None = None, target: Tensor | None = None, tap: Tap = NO_TAP
    ) -> Tensor:
        """What the model gives for these inputs, or for others in their place."""
        ids = self.ids if ids is None else ids
        target = self.target if target is None else target
        with evaluating(self.model):
            return self.model(*((ids,) if target is None else (ids, target)), tap=tap)

    def seen(self, *sites: str, keep: Tensor | None = None) -> dict[str, Tensor]:
        """The values of these sites in one pass; what is shown to nobody is not there."""
        return trace(self.model, *self.inputs, keep=keep, sites=sites).values

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


def case_of(opened: Opened, reading: Reading, look: Look) -> Case:
    """The right run: the opened model over the text it read."""
    ids = torch.tensor([[token.id for token in reading.tokens]])
    target = labels = None
    kind, head = opened.config.kind, opened.config.head
    if kind == "encoder-decoder":
        target = torch.tensor([[token.id for token in reading.target]])
        labels = torch.tensor([[token.id for token in reading.written]])
    elif head == "classifier":
        labels = reading.trace.output[reading.row].argmax(-1)[None]
    elif kind == "decoder":
        labels = torch.cat((ids[:, 1:], torch.full((1, 1), IGNORE)), 1)
    elif head != "none":
        labels = ids
    return Case(opened.model, ids, target, labels, reading, opened, look)
