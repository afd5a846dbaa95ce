"""The bytes of a forward pass, from the config and the numbers of texts and tokens alone.

The peak is what stays after the pass and what one layer or the head computes at once. It is an
upper bound: `tests/catalog/test_pass_size.py` compares it with measured peaks.
"""

from dataclasses import dataclass
from typing import Literal

from models import TransformerConfig

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
    if config.attention_cap is not None:
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
