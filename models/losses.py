"""Losses. Labels equal to `IGNORE` are left out."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

IGNORE = -100


def cross_entropy(logits: Float[Tensor, "*b v"], labels: Int[Tensor, "*b"]) -> Float[Tensor, ""]:
    """The mean of −log p(label), in nats. NaN when every label is ignored.

    Source: Attention Is All You Need, section 5.
    """
    return label_smoothing(logits, labels, alpha=0.0)


def label_smoothing(
    logits: Float[Tensor, "*b v"],
    labels: Int[Tensor, "*b"],
    alpha: float = 0.1,
    n_labels: Tensor | None = None,
) -> Float[Tensor, ""]:
    """Cross-entropy against (1 − α) · one-hot + α / v. Source: the same, section 5.4.

    The mean over the labels; with `n_labels` their sum divided by it, the share of some labels
    in the mean of more.
    """
    return F.cross_entropy(
        logits.flatten(0, -2),
        labels.flatten(),
        ignore_index=IGNORE,
        label_smoothing=alpha,
        reduction="mean" if n_labels is None else "sum",
    ) / (1 if n_labels is None else n_labels)


def linear_cross_entropy(
    x: Float[Tensor, "*b d"],
    words: Float[Tensor, "v d"],
    bias: Float[Tensor, "v"] | None,
    labels: Int[Tensor, "*b"],
    n_labels: Tensor | None = None,
) -> Float[Tensor, ""]:
    """The cross-entropy of the logits x · wordsᵀ + bias, of which only some rows exist at a time.

    Their gradients are computed with them, so nothing is kept for the backward pass. With
    `n_labels` as above.
    Source: Cut Your Losses in Large-Vocabulary Language Models (Wijmans et al. 2024).
    """
    return F.linear_cross_entropy(
        x.flatten(0, -2),
        words,
        labels.flatten(),
        linear_bias=bias,
        ignore_index=IGNORE,
        reduction="mean" if n_labels is None else "sum",
        options=nn.LinearCrossEntropyOptions(),
    ) / (1 if n_labels is None else n_labels)
