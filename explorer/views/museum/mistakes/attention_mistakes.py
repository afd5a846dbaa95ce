"""Mistakes of attention: shared projections, lost masks, fills, heads and scales."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from explorer.views.museum.mistakes.model_copy import copied, modules_of, uncached, with_mistake
from models.attention import EarlierKeys, MultiHeadAttention, attention_scores, repeat_groups
from models.config import TransformerConfig
from models.model import Transformer
from models.shapes import Bias, Mask, Rotation
from models.tap import NO_TAP, Tap

HARD_CODED_HEADS = 8


class OneForAllHeads(nn.Linear):
    """The same small projection for every head, each applied to its own slice of the input."""

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        return super().forward(x.unflatten(-1, (-1, self.in_features))).flatten(-2)


def one_projection(model: Transformer) -> Transformer:
    """Every head of queries, keys and values gets the block that head 0 has for its own slice.

    Head 0's bias comes with it, where there is one; the document's code has none.
    """
    wrong = copied(model)
    for attention in modules_of(wrong, MultiHeadAttention):
        width = attention.d_head
        for name in ("q_proj", "k_proj", "v_proj"):
            whole = getattr(attention, name)
            small = OneForAllHeads(width, width, device="meta")
            small.weight = nn.Parameter(whole.weight[:width, :width].detach().clone())
            bias = None if whole.bias is None else whole.bias[:width].detach().clone()
            small.register_parameter("bias", None if bias is None else nn.Parameter(bias))
            setattr(attention, name, small.requires_grad_(whole.weight.requires_grad))
    return wrong


def eight_heads(model: Transformer) -> Transformer:
    """All attention of the decoder has eight heads, whatever the config says.

    The weights are the same; they are only cut into other slices.
    """
    wrong = copied(model)
    assert wrong.decoder is not None
    for attention in modules_of(wrong.decoder, MultiHeadAttention):
        attention.n_heads = attention.n_kv_heads = HARD_CODED_HEADS
        attention.d_head = model.config.d_model // HARD_CODED_HEADS
        attention.scale = attention.d_head**-0.5
    return wrong


class Unmasked(MultiHeadAttention):
    """Loses the mask, and its weights too: no tap is shown any of them."""

    def forward(
        self,
        x: Float[Tensor, "b q D"],
        memory: Float[Tensor, "b s D"] | None = None,
        mask: Mask | None = None,
        bias: Bias | None = None,
        rotate: Rotation | None = None,
        cache: EarlierKeys | None = None,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "b q D"]:
        return super().forward(x, memory, None, bias, rotate, cache, NO_TAP)


def unmasked(model: Transformer) -> Transformer:
    return uncached(with_mistake(model, MultiHeadAttention, Unmasked))  # a cache is causal


class Filled(MultiHeadAttention):
    """Sets masked scores to a large negative number and relies on the softmax for the rest."""

    fill: float

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, bias: Bias | None, tap: Tap
    ) -> Float[Tensor, "b h q d"]:
        scores = tap("scores", attention_scores(q, k, self.scale, self.cap))
        scores = scores if bias is None else scores + bias
        weights = tap("weights", filled_weights(scores, mask, self.fill))
        return weights @ repeat_groups(v, q.shape[1])


def filled_weights(
    scores: Float[Tensor, "*b k"], mask: Tensor | None, fill: float
) -> Float[Tensor, "*b k"]:
    """Softmax of the scores, with `fill` where the mask is False.

    RuntimeError where the type of the scores cannot hold it: half precision ends at 65,504.
    """
    return (scores if mask is None else scores.masked_fill(~mask, fill)).softmax(-1)


FILLS = {"−1e9": -1e9, "−1e20": -1e20, "−∞": -math.inf}
"""What the documents set masked scores to: the handout, the notebook, and the other two."""


def filled(model: Transformer, fill: float = FILLS["−1e9"]) -> Transformer:
    wrong = with_mistake(model, MultiHeadAttention, Filled)
    for attention in modules_of(wrong, Filled):
        attention.fill = fill
    return wrong


def scaled_by_the_model(model: Transformer) -> Transformer:
    """1/√d_model where 1/√d_k belongs: `d_x` read as the width of x, which is all it can be."""
    wrong = copied(model)
    for attention in modules_of(wrong, MultiHeadAttention):
        attention.scale = 1 / math.sqrt(model.config.d_model)
    return wrong


def needs_even_slices(config: TransformerConfig) -> str | None:
    if config.kv_heads != config.n_heads:
        return "its heads share keys and values, so it has no slice for every head"
    if config.n_heads * config.head_width != config.d_model or config.n_heads == 1:
        return "its heads are not slices of the residual stream"
    return None


def needs_other_than_eight(config: TransformerConfig) -> str | None:
    if config.kind != "encoder-decoder":
        return "it has no decoder beside an encoder"
    if config.n_heads == HARD_CODED_HEADS:
        return "it has the eight heads that are hard-coded, so nothing would change"
    if config.d_model % HARD_CODED_HEADS or config.n_heads * config.head_width != config.d_model:
        return f"its width {config.d_model} cannot be cut into eight heads"
    if config.qk_norm:
        return "its norms of queries and keys are as wide as the heads it has"
    if config.attention_scale is not None:
        return "its scale is not 1/√d_k to begin with"
    if config.kv_heads != config.n_heads or config.positions in ("alibi", "relative", "rotary"):
        return "its positions or shared keys depend on the number of its heads"
    return None


def needs_padded_rows(config: TransformerConfig) -> str | None:
    return "it has no padding, so none of its rows is all masked" if config.pad_id is None else None


def needs_plain_scores(config: TransformerConfig) -> str | None:
    if "decoder" not in config.stacks:
        return "it masks nothing but padding"
    return None


def needs_several_heads(config: TransformerConfig) -> str | None:
    if config.attention_scale is not None:
        return "its scale is not 1/√d_k to begin with"
    return "with one head d_k is d_model" if config.head_width == config.d_model else None


def four_fills(scores: Float[Tensor, " k"], dtype: torch.dtype) -> dict[str, Tensor | None]:
    """Weights of an all-masked row by its fill; None where the number does not fit `dtype`."""
    nothing = torch.zeros_like(scores, dtype=torch.bool)
    row = scores.to(dtype)
    found: dict[str, Tensor | None] = {}
    for name, fill in FILLS.items():
        try:
            found[name] = filled_weights(row, nothing, fill)
        except RuntimeError:
            found[name] = None
    lowest = filled_weights(row, nothing, torch.finfo(dtype).min)
    found["lowest finite number, then zero"] = lowest * nothing.any()
    return found
