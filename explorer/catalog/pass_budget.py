"""Passes within the memory of the machine: a pass that has no room waits or is refused first.

The bytes of a pass follow from the config and the numbers of texts and tokens alone. The peak is
what stays after the pass and what one layer or the head computes at once. It is an upper bound:
`tests/catalog/test_pass_size.py` compares it with measured peaks.

An open model is a `BoundedTransformer`. So wherever its core is called, there is room for the pass,
its reader may leave, and between two layers other threads have their turn.
"""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from threading import local
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.optim import Optimizer
from torch.overrides import TorchFunctionMode

from explorer.catalog.attention_parts import parts, site
from explorer.system import cooperative
from explorer.system.cooperative import Budget, interruptible
from explorer.system.limits import PASS_BYTES, PASS_SHARE, PASS_TOKENS
from explorer.text.checked_text import ForwardPassError
from models import Transformer, TransformerConfig
from models.block import Block
from models.head_inputs import HEAD_INPUTS
from models.loading.memory import available_memory
from models.optimizers import MuonAndAdamW
from models.stack import Cache
from models.tap import NO_TAP, Tap
from models.transformer import EVERYWHERE, TransformerBase

Leaves = Literal["trace", "graph", "cache", "nothing"]
NUMBER = 4
"""Bytes of a number: everything is read as float32."""
WATCHED_SQUARES = 5
"""Numbers per head and pair of tokens where a tap sees the weights: scores, masked, softmax, …"""


@dataclass(frozen=True)
class PassSize:
    """Bytes that stay after the pass, and the most bytes at any moment, which include those."""

    stays: int
    peak: int


@dataclass(frozen=True)
class PassShape:
    """The sizes of a pass over `texts` texts of `tokens` tokens, with targets of `target` tokens.

    It computes logits at `read` positions, and keeps all attention weights of `watched` layers. It
    leaves the values of `CHEAP_SITES`, or the keys and values in a cache, or nothing, or, for
    gradients, the graph of everything. In `by_head` layers every head reads inputs of its own, and
    what every part writes is kept (`explorer.analysis.wiring`).
    """

    tokens: int
    target: int = 0
    texts: int = 1
    read: int = 1
    watched: int = 0
    by_head: int = 0
    leaves: Leaves = "trace"


def pass_size(config: TransformerConfig, shape: PassShape) -> PassSize:
    """The size of one pass, with the logits at the positions that are read."""
    left, temporary = 0, 0
    for stack in config.stacks:
        is_answer = stack == "decoder" and config.kind == "encoder-decoder"
        tokens = shape.target if is_answer else shape.tokens
        layers = config.encoder_layers if stack == "encoder" else config.n_layers
        memory = shape.tokens if is_answer else 0
        at_once = _temporary(config, stack, tokens, memory)
        temporary = max(temporary, at_once)
        left += _left(config, layers, tokens, memory, shape.leaves)
        left += layers * at_once if shape.leaves == "graph" else 0
    pairs = max(shape.tokens, shape.target) ** 2
    left += shape.watched * 2 * config.n_heads * pairs
    if shape.watched:
        temporary = max(temporary, WATCHED_SQUARES * config.n_heads * pairs)
    parts, inputs = config.n_heads + 1, 3 * config.n_heads + 1
    of_parts = shape.by_head * max(shape.tokens, shape.target) * config.d_model
    if shape.by_head:
        left += of_parts * parts  # what they wrote; gradients of inputs are freed at once
        temporary += of_parts // shape.by_head * 3 * inputs
    logits = _outputs(config, shape)
    peak = left + max(temporary, 3 * logits) + logits
    scale = NUMBER * shape.texts
    return PassSize((left + logits) * scale, peak * scale)


def _left(config: TransformerConfig, layers: int, tokens: int, memory: int, leaves: str) -> int:
    """Numbers that one text leaves behind in one stack: queries, keys, values, streams, masks."""
    width, grouped = _widths(config)
    masks = (len(set(config.windows)) + 2) * tokens * tokens // NUMBER
    around = 2 * tokens * config.d_model + masks
    if leaves == "nothing":
        return around
    layer = 2 * grouped * (tokens + memory)
    if leaves == "cache":
        layer += 2 * grouped * tokens  # a cache that is full doubles
    else:
        layer += tokens * (width + config.d_model) + (tokens * width if memory else 0)
    return layers * layer + around


def _temporary(config: TransformerConfig, stack: str, tokens: int, memory: int) -> int:
    """Numbers that one text needs at once in one block of a stack, without those that stay."""
    width, grouped = _widths(config)
    keys = max(tokens, memory)
    pairs = tokens * keys
    has_bias = config.positions in ("relative", "alibi")
    if config.attention_cap is not None or config.sink_logit:
        squares = (WATCHED_SQUARES + has_bias) * config.n_heads * pairs
    elif has_bias:
        # The bias, the bias with the mask, and the distances that the bias is computed from.
        squares = (2 * config.n_heads + 3) * pairs + pairs
    else:
        squares = 2 * pairs
    attention = tokens * (3 * config.d_model + 4 * width) + keys * 4 * grouped + squares
    d_ff = config.of_encoder.d_ff if stack == "encoder" else config.d_ff
    bias = config.n_heads * pairs if has_bias else 0
    mlp = tokens * (4 * config.d_model + (4 if config.gated else 2) * d_ff) + bias
    embedding = 4 * tokens * config.d_model
    return max(attention, mlp, embedding)


def _outputs(config: TransformerConfig, shape: PassShape) -> int:
    """Numbers of the output of one text."""
    last = shape.tokens if config.kind != "encoder-decoder" else shape.target
    if config.head == "none":
        return last * config.d_model
    if config.head == "classifier":
        return config.n_classes + (config.d_classifier or config.d_model)
    return min(shape.read, last) * config.vocab_size


def _widths(config: TransformerConfig) -> tuple[int, int]:
    """The width of all heads' queries, and of all their keys."""
    return config.n_heads * config.head_width, config.kv_heads * config.head_width


LITTLE = 8_000_000
"""Bytes that are always free."""

MULTIPLICATIONS = 4_000_000_000
"""Of one operation, at most: some tenths of a second of one core."""

MEMORY = Budget(lambda: available_memory())
"""The memory that loading models and passes share: one that does not fit waits."""
_here = local()
"""Whether this thread is within a pass already, whose room its parts use."""


class TooLargeError(ForwardPassError):
    """A pass needs more memory than it may have; a pass over `tokens` tokens would fit."""

    def __init__(self, sentence: str, tokens: int) -> None:
        super().__init__(sentence)
        self.tokens = tokens


@contextmanager
def room_for(config: TransformerConfig, shape: PassShape) -> Iterator[None]:
    """Room for a pass of this shape; TooLargeError says why there is none."""
    if getattr(_here, "passes", False):
        yield
        return
    longest = max(shape.tokens, shape.target)
    if not PASS_TOKENS.allows(longest):
        raise TooLargeError(PASS_TOKENS.refusal(longest), PASS_TOKENS.most)
    size = pass_size(config, shape)
    if not PASS_BYTES.allows(size.peak):
        tokens = _tokens_that_fit(config, shape, PASS_BYTES.most)
        raise TooLargeError(PASS_BYTES.refusal(size.peak), tokens)

    def refuse(free: int) -> TooLargeError:
        return TooLargeError(PASS_SHARE.refusal(), _tokens_that_fit(config, shape, free))

    try:
        _here.passes = True
        if size.peak <= LITTLE:
            yield
            return
        room = MEMORY.spend(size.peak, size.stays, refuse, PASS_SHARE.most)
        with nullcontext() if getattr(_here, "has_room", False) else room, SteppingOperations():
            yield
    finally:
        _here.passes = False


@contextmanager
def reserve(size: int) -> Iterator[None]:
    """Room for work of `size` bytes, passes included; afterwards all of it is free again.

    Open a model before: opening reserves room of its own, and would wait for this.
    """
    with MEMORY.spend(size, remains=0):
        _here.has_room = True
        try:
            yield
        finally:
            _here.has_room = False


def peak_of(config: TransformerConfig, inputs: tuple[Tensor, ...]) -> int:
    """Bytes of a pass over these IDs, or over source and target, with its gradient's graph."""
    with torch.enable_grad():
        return pass_size(config, shape_of(config, inputs, EVERYWHERE)).peak


def _tokens_that_fit(config: TransformerConfig, shape: PassShape, most: int) -> int:
    """The most tokens of one text whose pass takes at most `most` bytes."""

    def peak(tokens: int) -> int:
        text = replace(shape, tokens=tokens, texts=1, read=min(shape.read, tokens))
        return pass_size(config, text).peak

    return bisect_right(range(1, shape.tokens), most, key=peak)


class SteppingTap(Tap):
    """Takes a cooperative step at every value, then passes the value to another tap."""

    def __init__(self, beyond: Tap = NO_TAP) -> None:
        self._beyond = beyond

    def at(self, scope: str) -> Tap:
        return SteppingTap(self._beyond.at(scope))

    def wants(self, name: str) -> bool:
        return self._beyond.wants(name)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        cooperative.step()
        if value.requires_grad:
            value.register_hook(_step_of_gradient)
        return self._beyond(name, value)


def _step_of_gradient(_gradient: Tensor) -> None:
    cooperative.step()


@contextmanager
def steps_between_layers(model: nn.Module, optimizer: Optimizer | None = None) -> Iterator[None]:
    """Within it, a cooperative step comes before each layer of a pass of a plain model and of its
    gradient, and before each iteration of Muon.
    """

    def before(_block: nn.Module, inputs: tuple[Any, ...]) -> None:
        cooperative.step()
        if inputs[0].requires_grad:
            inputs[0].register_hook(_step_of_gradient)

    stepping: list[nn.Module] = [part for part in model.modules() if isinstance(part, Block)]
    if isinstance(optimizer, MuonAndAdamW):
        stepping.append(optimizer.newton_schulz)
    with ExitStack() as hooks:
        for part in stepping:
            hooks.enter_context(part.register_forward_pre_hook(before))
        yield


class SteppingOperations(TorchFunctionMode):
    """Within it, a cooperative step precedes each operation and each part of a large product."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(isinstance(value, Tensor) for value in args):  # else it may set a mode back
            cooperative.step()
        if not kwargs and (func is linear or func is Tensor.matmul):
            return _in_parts(func, *args)
        return func(*args, **(kwargs or {}))


def _in_parts(func: Any, x: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """A product with a matrix; a large one takes a step before each of its parts."""
    and_bias = () if bias is None else (bias,)
    if matrix.dim() != 2 or x.shape[:-1].numel() * matrix.numel() <= MULTIPLICATIONS:
        return func(x, matrix, *and_bias)
    rows = x.flatten(0, -2).split(max(1, MULTIPLICATIONS // matrix.numel()))
    parts = [func(part, matrix, *and_bias) for part in interruptible(rows)]
    for part in parts:
        if part.requires_grad:
            part.register_hook(_step_of_gradient)
    return torch.cat(parts).unflatten(0, x.shape[:-1])


class BoundedTransformer(Transformer):
    """A model of the app, from the parts of another model, which are not copied.

    It computes the same numbers up to rounding; passes wait for room and take cooperative steps.
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
        with room_for(self.config, shape_of(self.config, inputs, read_at, tap)):
            return super().forward(ids, target, read_at=read_at, tap=_with_steps(tap), **how)

    def encode(self, source: Tensor, keep: Tensor | None = None, tap: Tap = NO_TAP) -> Tensor:
        with room_for(self.config, shape_of(self.config, (source,), slice(0), tap)):
            return super().encode(source, keep, _with_steps(tap))

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
        with room_for(self.config, shape_of(self.config, inputs, read_at, tap, cache)):
            tap = _with_steps(tap)
            return super().decode(target, memory, memory_keep, keep, cache, read_at, tap)


def _with_steps(tap: Tap) -> Tap:
    return tap if isinstance(tap, SteppingTap) else SteppingTap(tap)


def shape_of(
    config: TransformerConfig,
    inputs: tuple[Tensor, ...],
    read_at: slice,
    tap: Tap = NO_TAP,
    cache: Cache | None = None,
) -> PassShape:
    """The shape of a pass over these IDs, or over source and target.

    Each input is of shape (texts, tokens); only the shapes are read. Cached tokens come before.
    """
    past = 0 if cache is None else cache[0]["self_attn"].length
    new = inputs[-1].shape[1]
    tokens, target = (past + new, 0) if len(inputs) == 1 else (inputs[0].shape[1], past + new)
    taps = [tap.at(site(part.name, n)) for part in parts(config) for n in range(part.layers)]
    leaves: Leaves = "nothing" if cache is None else "cache"
    if torch.is_grad_enabled():
        leaves = "graph"
    elif any(tap.wants("q") for tap in taps):
        leaves = "trace"
    return PassShape(
        tokens,
        target,
        texts=len(inputs[-1]),
        read=len(range(*read_at.indices(new))),
        watched=sum(tap.wants(name) for tap in taps for name in ("scores", "masked", "weights")),
        by_head=sum(any(map(tap.wants, HEAD_INPUTS)) for tap in taps),
        leaves=leaves,
    )
