"""What is read off the last stream: a token at every position, or one class for the text."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from models.config import TransformerConfig


class LanguageModelHead(nn.Module):
    """Scores every token of the vocabulary at every position.

    When it is tied it has no matrix of its own and uses the embedding's.
    Sources: Attention Is All You Need, section 3.4; Using the Output Embedding to
    Improve Language Models (Press and Wolf 2017).
    """

    def __init__(self, d_model: int, vocab_size: int, bias: bool, tied: bool) -> None:
        super().__init__()
        self.weight = None if tied else nn.Parameter(torch.empty(vocab_size, d_model))
        self.bias = nn.Parameter(torch.empty(vocab_size)) if bias else None

    def forward(
        self, x: Float[Tensor, "b t d"], embedding: Float[Tensor, "v d"]
    ) -> Float[Tensor, "b t v"]:
        return F.linear(x, embedding if self.weight is None else self.weight, self.bias)


class ClassifierHead(nn.Module):
    """Scores the classes from the first token's stream or from the mean of the real ones."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pooling = config.pooling
        width = config.d_classifier
        self.hidden = None if width is None else nn.Linear(config.d_model, width)
        self.dropout = nn.Dropout(config.dropout)
        self.out = nn.Linear(width or config.d_model, config.n_classes)

    def forward(
        self, x: Float[Tensor, "b t d"], keep: Bool[Tensor, "b t"] | None = None
    ) -> Float[Tensor, "b c"]:
        pooled = (first_kept if self.pooling == "first" else mean_of_kept)(x, keep)
        if self.hidden is not None:
            pooled = self.hidden(pooled).relu()
        return self.out(self.dropout(pooled))


def first_kept(x: Float[Tensor, "b t d"], keep: Bool[Tensor, "b t"] | None) -> Float[Tensor, "b d"]:
    """The first real token, wherever the padding is."""
    if keep is None:
        return x[:, 0]
    return x[torch.arange(len(x), device=x.device), keep.int().argmax(-1)]


def mean_of_kept(
    x: Float[Tensor, "b t d"], keep: Bool[Tensor, "b t"] | None
) -> Float[Tensor, "b d"]:
    """The mean over real tokens; zeros where there is none."""
    if keep is None:
        return x.mean(1)
    return (x * keep[..., None]).sum(1) / keep.sum(1, keepdim=True).clamp(min=1)
