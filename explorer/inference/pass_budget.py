"""Forward passes within bounds: what one would take is known, and refused or waited for, before.

Every pass of the app is made in here (`recorded_pass`, `TAP`), so that it is also one that its
reader may leave and that lets the others in between two layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from explorer.app.limits import PASS_BYTES, PASS_SHARE, PASS_TOKENS
from explorer.catalog import waiting
from explorer.catalog.waiting import Budget
from explorer.inference.pass_size import PassShape, pass_size
from explorer.inference.truncation import ForwardPassError
from models import Transformer, TransformerConfig, trace
from models.interventions import Edit
from models.loading.memory import available_memory
from models.tap import Tap
from models.trace import CHEAP_SITES, RecordingTap, Trace
from models.transformer import EVERYWHERE

LITTLE = 8_000_000
"""Bytes that are always there."""


def free() -> int:
    """Bytes that passes may take together: a share of those that are free."""
    return available_memory() * PASS_SHARE.most // 100


_memory = Budget(lambda: free())
"""What passes that run side by side take: one that does not fit beside them waits."""


class TooLargeError(ForwardPassError):
    """A pass that would need more than it is given; so many `tokens` could have one."""

    def __init__(self, sentence: str, tokens: int) -> None:
        super().__init__(sentence)
        self.tokens = tokens


@contextmanager
def passing(config: TransformerConfig, shape: PassShape) -> Iterator[None]:
    """Room for a pass of this shape; TooLargeError says why there is none."""
    longest = max(shape.tokens, shape.target)
    if not PASS_TOKENS.allows(longest):
        raise TooLargeError(PASS_TOKENS.refusal(longest), PASS_TOKENS.most)
    size = pass_size(config, shape)
    if not PASS_BYTES.allows(size.peak):
        tokens = _fitting(config, shape, PASS_BYTES.most)
        raise TooLargeError(PASS_BYTES.refusal(size.peak), tokens)

    def refuse() -> TooLargeError:
        return TooLargeError(PASS_SHARE.refusal(), _fitting(config, shape, free()))

    if size.peak <= LITTLE:
        yield
        return
    with _memory.spend(size.peak, size.recorded, refuse):
        yield


def _fitting(config: TransformerConfig, shape: PassShape, most: int) -> int:
    """So many tokens of one text have a pass of at most so many bytes."""
    fits, too_many = 0, shape.tokens
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        one = PassShape(middle, shape.target, 1, min(shape.read, middle))
        if pass_size(config, one).peak <= most:
            fits = middle
        else:
            too_many = middle
    return fits


class SteppingTap(Tap):
    """A pass that takes a step at every value that it makes."""

    def __call__(self, name: str, value: Tensor) -> Tensor:
        waiting.step()
        return value


class SteppingRecorder(RecordingTap):
    """The same for a pass that is recorded."""

    def __call__(self, name: str, value: Tensor) -> Tensor:
        waiting.step()
        return super().__call__(name, value)


TAP = SteppingTap()


def recorded_pass(
    model: Transformer,
    *inputs: Tensor,
    read_at: slice = EVERYWHERE,
    sites: Sequence[str] = CHEAP_SITES,
    edits: Sequence[Edit] = (),
    **keeps: Any,
) -> Trace:
    """The trace of a pass, made where there is room for it; TooLargeError says why not."""
    with passing(model.config, shape_of(inputs, read_at, edits)):
        return trace(
            model,
            *inputs,
            read_at=read_at,
            sites=sites,
            edits=edits,
            recorder=SteppingRecorder,
            **keeps,
        )


def shape_of(inputs: Sequence[Tensor], read_at: slice, edits: Sequence[Edit]) -> PassShape:
    """What a pass over these IDs, or over source and target, reads."""
    texts, tokens = inputs[0].shape
    target = inputs[1].shape[1] if len(inputs) > 1 else 0
    read = len(range(*read_at.indices(target or tokens)))
    watched = {edit.site for edit in edits if edit.site.endswith((".weights", ".scores"))}
    return PassShape(tokens, target, texts, read, len(watched))
