"""Passes within bounds: what one would take is known, and refused or waited for, before.

An opened model is a `BoundedTransformer`, so wherever its core is called, the pass is one that
there is room for, that its reader may leave, and that lets the others in between two layers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import local
from typing import Any

import torch
from torch import Tensor

from explorer.catalog.pass_size import Leaves, PassShape, pass_size
from explorer.system import cooperative
from explorer.system.cooperative import Budget
from explorer.system.limits import PASS_BYTES, PASS_SHARE, PASS_TOKENS
from explorer.text.checked_text import ForwardPassError
from models import Transformer, TransformerConfig
from models.head_inputs import HEAD_INPUTS
from models.loading.memory import available_memory
from models.stack import Cache
from models.tap import NO_TAP, Tap
from models.transformer import EVERYWHERE, TransformerBase

LITTLE = 8_000_000
"""Bytes that are always there."""

MEMORY = Budget(lambda: available_memory())
"""What models that are being loaded and passes take side by side: who does not fit waits."""
_here = local()
"""Whether this thread is within a pass already, whose room is that of its parts."""


class TooLargeError(ForwardPassError):
    """A pass that would need more than it is given; so many `tokens` could have one."""

    def __init__(self, sentence: str, tokens: int) -> None:
        super().__init__(sentence)
        self.tokens = tokens


@contextmanager
def passing(config: TransformerConfig, shape: PassShape) -> Iterator[None]:
    """Room for a pass of this shape; TooLargeError says why there is none."""
    if getattr(_here, "passes", False):
        yield
        return
    longest = max(shape.tokens, shape.target)
    if not PASS_TOKENS.allows(longest):
        raise TooLargeError(PASS_TOKENS.refusal(longest), PASS_TOKENS.most)
    size = pass_size(config, shape)
    if not PASS_BYTES.allows(size.peak):
        tokens = _fitting(config, shape, PASS_BYTES.most)
        raise TooLargeError(PASS_BYTES.refusal(size.peak), tokens)

    def refuse(free: int) -> TooLargeError:
        return TooLargeError(PASS_SHARE.refusal(), _fitting(config, shape, free))

    try:
        _here.passes = True
        if size.peak <= LITTLE or getattr(_here, "has_room", False):
            yield
            return
        with MEMORY.spend(size.peak, size.stays, refuse, PASS_SHARE.most):
            yield
    finally:
        _here.passes = False


@contextmanager
def reserved(size: int) -> Iterator[None]:
    """Room for work of so many bytes, which its passes are a part of; nothing of it stays.

    A model is opened before: it asks for room of its own, and would wait for this one.
    """
    with MEMORY.spend(size, remains=0):
        _here.has_room = True
        try:
            yield
        finally:
            _here.has_room = False


def peak_of(config: TransformerConfig, inputs: tuple[Tensor, ...]) -> int:
    """Bytes of a pass over these ids, or over source and target, with its gradient's graph."""
    with torch.enable_grad():
        return pass_size(config, shape_of(config, inputs, EVERYWHERE)).peak


def _fitting(config: TransformerConfig, shape: PassShape, most: int) -> int:
    """So many tokens of one text have a pass of at most so many bytes."""
    fits, too_many = 0, shape.tokens
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        one = replace(shape, tokens=middle, texts=1, read=min(shape.read, middle))
        if pass_size(config, one).peak <= most:
            fits = middle
        else:
            too_many = middle
    return fits


class SteppingTap(Tap):
    """A step at every value that is made, which another tap is shown then."""

    def __init__(self, beyond: Tap = NO_TAP) -> None:
        self._beyond = beyond

    def at(self, scope: str) -> Tap:
        return SteppingTap(self._beyond.at(scope))

    def wants(self, name: str) -> bool:
        return self._beyond.wants(name)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        cooperative.step()
        return self._beyond(name, value)


class BoundedTransformer(Transformer):
    """A model of the app, put together from the parts of another one; nothing is copied.

    The same numbers, each pass in a room of its own and with steps.
    """

    def __init__(self, model: Transformer) -> None:
        parts = model.config, model.encoder, model.decoder, model.head, model.pad_id, model.bos_id
        TransformerBase.__init__(self, *parts)
        self.training = model.training

    def forward(
        self,
        ids: Tensor,
        target: Tensor | None = None,
        *,
        read_at: slice = EVERYWHERE,
        tap: Tap = NO_TAP,
        **how: Any,
    ) -> Tensor:
        inputs = (ids,) if target is None else (ids, target)
        with passing(self.config, shape_of(self.config, inputs, read_at, tap)):
            return super().forward(ids, target, read_at=read_at, tap=_stepping(tap), **how)

    def encode(self, source: Tensor, keep: Tensor | None = None, tap: Tap = NO_TAP) -> Tensor:
        with passing(self.config, shape_of(self.config, (source,), slice(0), tap)):
            return super().encode(source, keep, _stepping(tap))

    def decode(
        self,
        target: Tensor,
        memory: Tensor | None = None,
        memory_keep: Tensor | None = None,
        keep: Tensor | None = None,
        cache: Cache | None = None,
        read_at: slice = EVERYWHERE,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        inputs = (target,) if memory is None else (memory[..., 0], target)
        shape = shape_of(self.config, inputs, read_at, tap, cache)
        with passing(self.config, shape):
            tap = _stepping(tap)
            return super().decode(target, memory, memory_keep, keep, cache, read_at, tap)


def _stepping(tap: Tap) -> Tap:
    return tap if isinstance(tap, SteppingTap) else SteppingTap(tap)


def shape_of(
    config: TransformerConfig,
    inputs: tuple[Tensor, ...],
    read_at: slice,
    tap: Tap = NO_TAP,
    cache: Cache | None = None,
) -> PassShape:
    """What a pass over these IDs, or over source and target, reads and leaves.

    Each is of (texts, tokens); only how large they are is read. Those in the cache come before.
    """
    past = 0 if cache is None else cache[0]["self_attn"].length
    new = inputs[-1].shape[1]
    tokens, target = (past + new, 0) if len(inputs) == 1 else (inputs[0].shape[1], past + new)
    taps = [tap.at(stack).at(str(layer)).at(part) for stack, layer, part in _attentions(config)]
    leaves: Leaves = "nothing" if cache is None else "cache"
    if torch.is_grad_enabled():
        leaves = "graph"
    elif any(each.wants("q") for each in taps):
        leaves = "trace"
    return PassShape(
        tokens,
        target,
        texts=len(inputs[-1]),
        read=len(range(*read_at.indices(new))),
        watched=sum(each.wants(name) for each in taps for name in ("scores", "masked", "weights")),
        by_head=sum(any(map(each.wants, HEAD_INPUTS)) for each in taps),
        leaves=leaves,
    )


def _attentions(config: TransformerConfig) -> Iterator[tuple[str, int, str]]:
    for stack in config.stacks:
        layers = config.encoder_layers if stack == "encoder" else config.n_layers
        for layer in range(layers):
            yield stack, layer, "self_attn"
            if stack == "decoder" and config.kind == "encoder-decoder":
                yield stack, layer, "cross_attn"
