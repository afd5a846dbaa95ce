"""Attention: every query attends to the keys and takes a weighted mean of their values.

In shapes d is the width of one head and D that of the model.
Source: Attention Is All You Need, section 3.2.
"""

import math
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from models.masking import boolean_mask
from models.shapes import AnyMask, Bias, Keys, Mask, Queries, Rotation, Scores
from models.tap import NO_TAP, Tap


def attention_scores(q: Queries, k: Keys, scale: float, cap: float | None = None) -> Scores:
    """q·k × scale for every pair, soft-capped to ± `cap`. Cost grows with b · h · q · k · d.

    Source of the cap: Gemma 2 (Gemma Team 2024), section 2.
    """
    scores = (q * scale) @ repeat_groups(k, q.shape[1]).mT
    return scores if cap is None else cap * (scores / cap).tanh()


def attention_weights(
    scores: Scores, mask: Mask | None = None, bias: Bias | None = None, tap: Tap = NO_TAP
) -> Scores:
    """Softmax of the scores over the keys that are not masked; all zeros where every key is.

    Masked scores become the lowest finite number, whose softmax is exactly zero. Not −∞, so
    that a fully masked row is free of NaN, forward and backward, until the last line.
    """
    scores = scores if bias is None else scores + bias
    if mask is None:
        return tap("masked", scores).softmax(-1)
    weights = tap("masked", scores.where(mask, torch.finfo(scores.dtype).min)).softmax(-1)
    # The same as `any`, which takes longer than a softmax; the maximum of bytes is quick.
    has_key = mask.view(torch.uint8).amax(-1, keepdim=True).bool()
    return weights if has_key.all() else weights * has_key


def repeat_groups(x: Keys, n_heads: int) -> Float[Tensor, "b h k d"]:
    """One copy of the grouped keys (or values) for every head that shares them."""
    return x if x.shape[1] == n_heads else x.repeat_interleave(n_heads // x.shape[1], dim=1)


def scaled_dot_product_attention(
    q: Queries,
    k: Keys,
    v: Keys,
    mask: AnyMask | None = None,
    bias: Bias | None = None,
    scale: float | None = None,
    cap: float | None = None,
    tap: Tap = NO_TAP,
) -> tuple[Queries, Scores]:
    """softmax(QKᵀ / √d + bias) V and the weights themselves, every step shown to the tap.

    Memory grows with h · q · k. Source: Attention Is All You Need, equation 1.
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = tap("scores", attention_scores(q, k, scale, cap))
    weights = tap("weights", attention_weights(scores, boolean_mask(mask), bias, tap))
    return weights @ repeat_groups(v, q.shape[1]), weights


@runtime_checkable
class EarlierKeys(Protocol):
    """Keys and values of the tokens before these: see `models.cache`."""

    length: int

    def read(self) -> tuple[Keys, Keys]: ...
    def append(self, k: Keys, v: Keys) -> tuple[Keys, Keys]: ...


class MultiHeadAttention(nn.Module):
    """h heads side by side, each with its own projections, joined by a last one.

    With `memory` the keys and values come from there (cross-attention), else from `x`.
    `n_kv_heads` below `n_heads` shares keys and values between heads (grouped-query
    attention, Ainslie et al. 2023); `q_norm` and `k_norm` norm every query and key
    (Query-Key Normalization, Henry et al. 2020). `scale` stands for 1/√d; `rows` is RowScales.
    ValueError when the heads do not divide the width.
    Source: Attention Is All You Need, section 3.2.2.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        qkv_bias: bool = True,
        bias: bool = True,
        scale: float | None = None,
        cap: float | None = None,
        q_norm: nn.Module | None = None,
        k_norm: nn.Module | None = None,
        rows: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if d_head is None and d_model % n_heads:
            raise ValueError(f"d_model {d_model} is not divisible by n_heads {n_heads}.")
        self.n_heads = n_heads
        self.n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        self.d_head = d_model // n_heads if d_head is None else d_head
        self.scale = self.d_head**-0.5 if scale is None else scale
        self.cap = cap
        self.q_proj = nn.Linear(d_model, n_heads * self.d_head, bias=qkv_bias)
        self.k_proj = nn.Linear(d_model, self.n_kv_heads * self.d_head, bias=qkv_bias)
        self.v_proj = nn.Linear(d_model, self.n_kv_heads * self.d_head, bias=qkv_bias)
        self.o_proj = nn.Linear(n_heads * self.d_head, d_model, bias=bias)
        self.q_norm = q_norm or nn.Identity()
        self.k_norm, self.rows = k_norm or nn.Identity(), rows

    def forward(
        self,
        x: Float[Tensor, "b q D"],
        memory: Float[Tensor, "b s D"] | None = None,
        mask: AnyMask | None = None,
        bias: Bias | None = None,
        rotate: Rotation | None = None,
        cache: EarlierKeys | None = None,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "b q D"]:
        x = tap("norm", x)
        q = tap("q_norm", self.q_norm(tap("q_proj", self.split(self.q_proj(x)))))
        q = q if rotate is None else rotate(q)
        if memory is not None and cache is not None and cache.length:
            k, v = cache.read()  # the memory stays the same from token to token
        else:
            k, v = self.keys_and_values(x if memory is None else memory, rotate, tap)
            k, v = (k, v) if cache is None else cache.append(k, v)
        tap = tap if self.rows is None else self.rows(x, tap)
        return self.combine(q, k, v, mask, bias, tap)

    def keys_and_values(
        self, x: Float[Tensor, "b k D"], rotate: Rotation | None = None, tap: Tap = NO_TAP
    ) -> tuple[Keys, Keys]:
        k, v = self.split(self.k_proj(x)), self.split(self.v_proj(x))
        k = tap("k_norm", self.k_norm(tap("k_proj", k)))
        return k if rotate is None else rotate(k), v

    def combine(
        self, q: Queries, k: Keys, v: Keys, mask: AnyMask | None, bias: Bias | None, tap: Tap
    ) -> Float[Tensor, "b q D"]:
        """The sum of what the heads write."""
        q, k, v = tap("q", q), tap("k", k), tap("v", v)
        mask, bias = show_mask_and_bias(boolean_mask(mask), bias, q, k, tap)
        head_out = tap("head_out", self.attend(q, k, v, mask, bias, tap))
        return tap("out", self.o_proj(head_out.transpose(1, 2).flatten(2)))

    def attend(
        self, q: Queries, k: Keys, v: Keys, mask: Mask | None, bias: Bias | None, tap: Tap
    ) -> Queries:
        """The weighted mean of the values; torch's fused kernel never holds the weights."""
        if self.cap is not None or any(map(tap.wants, ("scores", "masked", "weights"))):
            return scaled_dot_product_attention(q, k, v, mask, bias, self.scale, self.cap, tap)[0]
        if bias is not None:
            bias = bias.to(q.dtype)
            mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
        grouped = k.shape[1] != q.shape[1]
        return F.scaled_dot_product_attention(q, k, v, mask, scale=self.scale, enable_gqa=grouped)

    def split(self, x: Float[Tensor, "b t hd"]) -> Float[Tensor, "b h t d"]:
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)


def show_mask_and_bias(
    mask: Mask | None, bias: Bias | None, q: Queries, k: Keys, tap: Tap
) -> tuple[Mask | None, Bias | None]:
    """Mask and bias as the tap returns them; an absent one is shown as all True or all zeros."""
    shape = (1, 1, q.shape[2], k.shape[2])
    if tap.wants("mask"):
        everything = q.new_ones((), dtype=torch.bool).expand(shape)  # a view: one byte
        full = tap("mask", everything if mask is None else mask.expand(-1, -1, *shape[2:]))
        mask = None if full is everything else full
    if tap.wants("bias"):
        nothing = q.new_zeros(()).expand(shape)
        added = tap("bias", nothing if bias is None else bias)
        bias = None if added is nothing else added
    return mask, bias
