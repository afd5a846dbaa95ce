"""Attention: every query attends to the keys and takes a weighted mean of their values.

Shapes: b batch, h heads, g heads of the keys and values (h, or fewer when they are
grouped), q queries, k keys, d width of one head, D width of the model.
Source: Attention Is All You Need, section 3.2.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from models.cache import LayerCache
from models.masking import boolean_mask
from models.normalization import RMSNorm
from models.positional import Rotation
from models.shapes import AnyMask, Bias, Keys, Mask, Queries, Scores
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

    Masked scores become the lowest finite number, not −∞, so that an all-masked row
    stays free of NaN, forward and backward, until the last line makes it zero. In any
    other row the softmax of a masked score is exactly zero.
    """
    if bias is not None:
        scores = scores + bias
    if mask is None:
        return tap("masked", scores).softmax(-1)
    lowest = torch.finfo(scores.dtype).min
    weights = tap("masked", scores.where(mask, lowest)).softmax(-1)
    # What `any` says, which takes longer than the softmax: bytes have a quick maximum.
    has_key = mask.view(torch.uint8).amax(-1, keepdim=True).bool()
    return weights if has_key.all() else weights * has_key


def repeat_groups(x: Keys, n_heads: int) -> Float[Tensor, "b h k d"]:
    """One copy of the grouped keys (or values) for every head that shares them."""
    groups = x.shape[1]
    return x if groups == n_heads else x.repeat_interleave(n_heads // groups, dim=1)


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


def fused_attention(
    q: Queries,
    k: Keys,
    v: Keys,
    mask: Mask | None = None,
    bias: Bias | None = None,
    scale: float | None = None,
) -> Queries:
    """The same by torch's fused kernel, which never holds the weights."""
    if bias is not None:
        bias = bias.to(q.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    grouped = k.shape[1] != q.shape[1]
    return F.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=grouped)


class HeadInputs(NamedTuple):
    """An input of its own for the queries, the keys and the values of every head."""

    q: Float[Tensor, "b h t D"]
    k: Float[Tensor, "b h t D"]
    v: Float[Tensor, "b h t D"]


class MultiHeadAttention(nn.Module):
    """h heads side by side, each with its own projections, joined by a last one.

    With `memory` the keys and values come from there (cross-attention), else from `x`, which
    may be `HeadInputs`: then every head has keys and values of its own.
    `n_kv_heads` below `n_heads` shares keys and values between heads (grouped-query
    attention, Ainslie et al. 2023); `qk_norm`, when it is a number, norms every query and
    key with this ε (Query-Key Normalization for Transformers, Henry et al. 2020). `scale`
    stands for 1/√d. ValueError when the heads do not divide the width, or for `HeadInputs` with a
    memory.
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
        qk_norm: float | None = None,
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
        self.q_norm = nn.Identity() if qk_norm is None else RMSNorm(self.d_head, qk_norm)
        self.k_norm = nn.Identity() if qk_norm is None else RMSNorm(self.d_head, qk_norm)

    def forward(
        self,
        x: Float[Tensor, "b q D"] | HeadInputs,
        memory: Float[Tensor, "b s D"] | None = None,
        mask: AnyMask | None = None,
        bias: Bias | None = None,
        rotate: Rotation | None = None,
        cache: LayerCache | None = None,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "b q D"]:
        q = tap("q_proj", self.project(self.q_proj, x.q if isinstance(x, HeadInputs) else x))
        q = tap("q_norm", self.q_norm(q))
        k, v = self.keys_and_values(x, memory, rotate, cache, tap)
        q, k, v = tap("q", q if rotate is None else rotate(q)), tap("k", k), tap("v", v)
        mask, bias = show_mask_and_bias(boolean_mask(mask), bias, q, k, tap)
        head_out = tap("head_out", self.attend(q, k, v, mask, bias, tap))
        return tap("out", self.o_proj(head_out.transpose(1, 2).flatten(2)))

    def attend(
        self, q: Queries, k: Keys, v: Keys, mask: Mask | None, bias: Bias | None, tap: Tap
    ) -> Queries:
        """The weighted mean of the values, by the fused kernel unless the tap wants the weights."""
        if self.cap is not None or any(map(tap.wants, ("scores", "masked", "weights"))):
            return scaled_dot_product_attention(q, k, v, mask, bias, self.scale, self.cap, tap)[0]
        return fused_attention(q, k, v, mask, bias, self.scale)

    def keys_and_values(
        self,
        x: Tensor | HeadInputs,
        memory: Tensor | None,
        rotate: Rotation | None,
        cache: LayerCache | None,
        tap: Tap = NO_TAP,
    ) -> tuple[Keys, Keys]:
        """Keys and values of all tokens that can be attended to, earlier ones from the cache."""
        if memory is not None and isinstance(x, HeadInputs):
            raise ValueError("Heads that read inputs of their own read no memory.")
        if memory is not None and cache is not None and cache.length:
            return cache.read()  # the memory stays the same from token to token
        if isinstance(x, HeadInputs):
            _, from_k, from_v = x
        else:
            from_k = from_v = x if memory is None else memory
        k = tap("k_norm", self.k_norm(tap("k_proj", self.project(self.k_proj, from_k))))
        v = self.project(self.v_proj, from_v)
        k = k if rotate is None else rotate(k)
        return (k, v) if cache is None else cache.append(k, v)

    def project(self, proj: nn.Linear, x: Tensor) -> Float[Tensor, "b h t d"]:
        """What a projection makes of x (b, t, D), or of the input of each head (b, h, t, D)."""
        if x.dim() == 3:
            return self.split(proj(x))
        weight = proj.weight.unflatten(0, (-1, self.d_head))  # (g, d, D)
        # The batch goes with the tokens: where it is broadcast, each row has a copy of the weights.
        of_groups = x.unflatten(1, (len(weight), -1)).transpose(0, 1)  # (g, b, h/g, t, D)
        projected = of_groups.flatten(1, 3) @ weight.mT  # (g, b·h/g·t, d)
        if proj.bias is not None:
            projected = projected + proj.bias.unflatten(0, (-1, 1, self.d_head))
        return projected.unflatten(1, of_groups.shape[1:4]).transpose(0, 1).flatten(1, 2)

    def split(self, x: Float[Tensor, "b t hd"]) -> Float[Tensor, "b h t d"]:
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)


def show_mask_and_bias(
    mask: Mask | None, bias: Bias | None, q: Tensor, k: Tensor, tap: Tap
) -> tuple[Mask | None, Bias | None]:
    """Mask and bias as the tap returns them; an absent one is shown as all True or all zeros."""
    shape = (1, 1, q.shape[2], k.shape[2])
    if tap.wants("mask"):
        everything = q.new_ones((), dtype=torch.bool).expand(shape)  # a view: one byte
        shown = tap("mask", everything if mask is None else mask.expand(-1, -1, *shape[2:]))
        mask = None if shown is everything else shown
    if tap.wants("bias"):
        nothing = q.new_zeros(()).expand(shape)
        shown = tap("bias", nothing if bias is None else bias)
        bias = None if shown is nothing else shown
    return mask, bias
