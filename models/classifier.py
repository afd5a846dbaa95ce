"""The output head of a classifier: logits of classes for the whole text."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from models.shapes import Stream
from models.tap import NO_TAP, Tap


class ClassifierHead(nn.Module):
    """Logits of the classes, from the vector of one token or the mean over all real ones."""

    def __init__(
        self,
        d_model: int,
        n_classes: int,
        pooling: str = "first",
        d_hidden: int | None = None,
        activation: str = "relu",
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.pooling = POOLINGS[pooling]
        self.hidden = None if d_hidden is None else nn.Linear(d_model, d_hidden)
        self.activation = getattr(torch, activation)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(d_hidden or d_model, n_classes, bias)

    def forward(
        self, x: Stream, keep: Bool[Tensor, "b t"] | None = None, tap: Tap = NO_TAP
    ) -> Float[Tensor, "b c"]:
        pooled = tap("pooled", self.pooling(x, keep))
        if self.hidden is not None:
            pooled = tap("hidden", self.activation(self.hidden(pooled)))
        return self.out(self.dropout(pooled))


def first_kept(x: Stream, keep: Bool[Tensor, "b t"] | None) -> Float[Tensor, "b d"]:
    """The first real token, wherever the padding is."""
    if keep is None:
        return x[:, 0]
    return x[torch.arange(len(x), device=x.device), keep.int().argmax(-1)]


def last_kept(x: Stream, keep: Bool[Tensor, "b t"] | None) -> Float[Tensor, "b d"]:
    """The last real token, wherever the padding is."""
    if keep is None:
        return x[:, -1]
    return first_kept(x.flip(1), keep.flip(1))


def mean_of_kept(x: Stream, keep: Bool[Tensor, "b t"] | None) -> Float[Tensor, "b d"]:
    """The mean over real tokens; zeros where there is none."""
    if keep is None:
        return x.mean(1)
    return (x * keep[..., None]).sum(1) / keep.sum(1, keepdim=True).clamp(min=1)


POOLINGS = {"first": first_kept, "mean": mean_of_kept, "last": last_kept}
