"""Losses. Labels equal to `IGNORE` are left out."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from models.output_heads import LanguageModelHead
from models.trace import RecordingTap
from models.transformer import TransformerBase

IGNORE = -100
LARGE_LOGITS = 2**24  # logits of more numbers than this are computed in parts


def cross_entropy(logits: Float[Tensor, "*b v"], labels: Int[Tensor, "*b"]) -> Float[Tensor, ""]:
    """The mean of −log p(label), in nats. NaN when every label is ignored."""
    return label_smoothing(logits, labels, alpha=0.0)


def label_smoothing(
    logits: Float[Tensor, "*b v"],
    labels: Int[Tensor, "*b"],
    alpha: float = 0.1,
    n_labels: Tensor | None = None,
) -> Float[Tensor, ""]:
    """Cross-entropy against (1 − α) · one-hot + α / v: the mean, or the sum divided by `n_labels`.

    Source: Attention Is All You Need, section 5.4.
    """
    return F.cross_entropy(
        logits.flatten(0, -2),
        labels.flatten(),
        ignore_index=IGNORE,
        label_smoothing=alpha,
        reduction="mean" if n_labels is None else "sum",
    ) / (1 if n_labels is None else n_labels)


def has_large_logits(model: TransformerBase, labels: Tensor) -> bool:
    """Whether the logits of these labels are computed in parts, where that costs no time."""
    head = model.head
    if not isinstance(head, LanguageModelHead) or head.cap is not None or head._forward_hooks:
        return False  # a hook wants the logits themselves
    n_tokens, d_model = model.last_stack.embedding.weight.shape
    is_rounded = torch.is_autocast_enabled(labels.device.type)
    is_large = labels.numel() * n_tokens > LARGE_LOGITS
    return is_large and labels.numel() >= d_model and not is_rounded


def large_logits_loss(
    model: TransformerBase, inputs: Sequence[Tensor], labels: Tensor, n_labels: Tensor | None = None
) -> Float[Tensor, ""]:
    """The cross-entropy of the model's logits (…, v), of which a few rows exist at a time.

    Gradients are computed with the logits, so nothing is kept for the backward pass.
    Source: Cut Your Losses in Large-Vocabulary Language Models (Wijmans et al. 2024).
    """
    head, tap = model.head, RecordingTap(("*.final",))
    assert isinstance(head, LanguageModelHead)
    model(*inputs, read_at=slice(0, 0), tap=tap)
    *_, final = tap.values.values()  # the residual stream that the head reads
    x, words = head.factors(final, model.last_stack.embedding.weight)
    return F.linear_cross_entropy(
        x.flatten(0, -2),
        words,
        labels.flatten(),
        linear_bias=head.bias,
        ignore_index=IGNORE,
        reduction="mean" if n_labels is None else "sum",
        options=nn.LinearCrossEntropyOptions(),
    ) / (1 if n_labels is None else n_labels)
