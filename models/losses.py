"""Losses. Labels equal to `IGNORE` are left out."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

IGNORE = -100


def cross_entropy(logits: Float[Tensor, "*b v"], labels: Int[Tensor, "*b"]) -> Float[Tensor, ""]:
    """The mean of −log p(label), in nats. NaN when every label is ignored.

    Source: Attention Is All You Need, section 5.
    """
    return label_smoothing(logits, labels, alpha=0.0)


def label_smoothing(
    logits: Float[Tensor, "*b v"], labels: Int[Tensor, "*b"], alpha: float = 0.1
) -> Float[Tensor, ""]:
    """Cross-entropy against (1 − α) · one-hot + α / v. Source: the same, section 5.4."""
    return F.cross_entropy(
        logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORE, label_smoothing=alpha
    )
