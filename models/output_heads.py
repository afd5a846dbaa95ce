"""Output heads: logits of the vocabulary at every position, or of classes for the whole text."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from models.feed_forward import ACTIVATION_FUNCTIONS
from models.shapes import Stream, Words
from models.tap import NO_TAP, Tap


class MaskedTransform(nn.Module):
    """The extra layer in the head of a masked language model: linear, activation, norm."""

    def __init__(self, d_model: int, activation: str, norm: nn.Module) -> None:
        super().__init__()
        self.proj = nn.Linear(d_model, d_model)
        self.activation = ACTIVATION_FUNCTIONS[activation]
        self.norm = norm

    def forward(self, x: Stream) -> Stream:
        return self.norm(self.activation(self.proj(x)))


class LanguageModelHead(nn.Module):
    """Logits of every token of the vocabulary at every position.

    A tied head has no matrix of its own and uses the embedding's. That of a masked language
    model transforms its input first (BERT, Devlin et al. 2018). A soft cap keeps the logits
    between ± it (Gemma 2, 2024, section 2).
    Sources: Attention Is All You Need, section 3.4; Using the Output Embedding to
    Improve Language Models (Press and Wolf 2017).
    """

    def __init__(
        self,
        d_model: int,
        vocab_size: int,
        tied: bool = False,
        bias: bool = True,
        transform: MaskedTransform | None = None,
        scale: float = 1.0,
        cap: float | None = None,
    ) -> None:
        super().__init__()
        self.transform: MaskedTransform | nn.Identity = transform or nn.Identity()
        self.scale, self.cap = scale, cap
        self.weight = None if tied else nn.Parameter(torch.empty(vocab_size, d_model))
        self.bias = nn.Parameter(torch.empty(vocab_size)) if bias else None

    def factors(self, x: Stream, embedding: Words, tap: Tap = NO_TAP) -> tuple[Stream, Words]:
        """The two factors of the logits, before bias and cap."""
        x = tap("transform", self.transform(x))
        x = x if self.scale == 1 else x * self.scale
        return x, embedding if self.weight is None else self.weight

    def forward(self, x: Stream, embedding: Words, tap: Tap = NO_TAP) -> Float[Tensor, "b t v"]:
        x, words = self.factors(x, embedding, tap)
        # Vocabulary × tokens: the wide matrix first is up to a sixth faster.
        logits = (words @ x.flatten(0, 1).mT).mT.unflatten(0, x.shape[:2])
        logits = logits if self.bias is None else logits + self.bias
        return logits if self.cap is None else self.cap * (logits / self.cap).tanh()


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
    return x[:, -1] if keep is None else first_kept(x.flip(1), keep.flip(1))


def mean_of_kept(x: Stream, keep: Bool[Tensor, "b t"] | None) -> Float[Tensor, "b d"]:
    """The mean over real tokens; zeros where there is none."""
    if keep is None:
        return x.mean(1)
    return (x * keep[..., None]).sum(1) / keep.sum(1, keepdim=True).clamp(min=1)


POOLINGS = {"first": first_kept, "mean": mean_of_kept, "last": last_kept}

PROBLEM_TYPES = ("single_label_classification", "multi_label_classification", "regression")
SCORE_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": partial(torch.softmax, dim=-1),  # one class of all: probabilities that sum to 1
    "sigmoid": torch.sigmoid,  # each label by itself: a probability between 0 and 1
    "none": lambda logits: logits,  # the values of a regression
}
"""What turns the logits of a head into the numbers that are shown."""
