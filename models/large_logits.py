"""The loss of a large vocabulary, whose logits are never all there at once."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from models.losses import linear_cross_entropy
from models.output_heads import LanguageModelHead
from models.tap import Tap
from models.transformer import TransformerBase

LARGE_LOGITS = 2**24
"""Numbers in the logits of a batch, beyond which they are computed in parts."""


def has_large_logits(model: TransformerBase, labels: Tensor) -> bool:
    """Whether the logits of these labels are computed in parts.

    It costs no time where there are as many tokens as a vector has numbers, or more.
    """
    head, words = model.head, model.last_stack.embedding.weight
    if not isinstance(head, LanguageModelHead) or head.cap is not None:
        return False
    words = words if head.weight is None else head.weight
    is_rounded = torch.is_autocast_enabled(labels.device.type)
    is_large = labels.numel() * len(words) > LARGE_LOGITS
    return is_large and labels.numel() >= words.shape[1] and not is_rounded


def large_logits_loss(
    model: TransformerBase,
    inputs: Sequence[Tensor],
    labels: Tensor,
    n_labels: Tensor | None = None,
) -> Float[Tensor, ""]:
    """`models.losses.cross_entropy` of what the model predicts, in parts."""
    head, final = model.head, FinalStream()
    assert isinstance(head, LanguageModelHead)
    model(*inputs, read_at=slice(0, 0), tap=final)
    assert final.value is not None
    x, words = head.factors(final.value, model.last_stack.embedding.weight)
    return linear_cross_entropy(x, words, head.bias, labels, n_labels)


class FinalStream(Tap):
    """Keeps the residual stream that the head reads."""

    value: Tensor | None = None

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if name == "final":
            self.value = value
        return value
