"""Output heads: logits of the vocabulary at every position, or of classes for the whole text."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from models.config import TransformerConfig
from models.feed_forward import ACTIVATION_FUNCTIONS
from models.normalization import build_norm
from models.shapes import Stream
from models.tap import NO_TAP, Tap


class LanguageModelHead(nn.Module):
    """Logits of every token of the vocabulary at every position.

    A tied head has no matrix of its own and uses the embedding's. That of a masked language
    model transforms its input first (BERT, Devlin et al. 2018). A soft cap keeps the logits
    between ± it (Gemma 2, 2024, section 2).
    Sources: Attention Is All You Need, section 3.4; Using the Output Embedding to
    Improve Language Models (Press and Wolf 2017).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        masked, tied = config.head == "masked-language-model", config.tie_embeddings
        shape = (config.vocab_size, config.d_model)
        self.transform = MaskedTransform(config) if masked else nn.Identity()
        self.scale, self.cap = config.logit_scale, config.logit_cap
        self.weight = None if tied else nn.Parameter(torch.empty(shape))
        self.bias = nn.Parameter(torch.empty(config.vocab_size)) if config.has_head_bias else None

    def factors(
        self, x: Stream, embedding: Float[Tensor, "v d"], tap: Tap = NO_TAP
    ) -> tuple[Stream, Float[Tensor, "v d"]]:
        """What the logits are products of, but for their bias and cap."""
        x = tap("transform", self.transform(x))
        x = x if self.scale == 1 else x * self.scale
        return x, embedding if self.weight is None else self.weight

    def forward(
        self, x: Stream, embedding: Float[Tensor, "v d"], tap: Tap = NO_TAP
    ) -> Float[Tensor, "b t v"]:
        x, words = self.factors(x, embedding, tap)
        # Vocabulary × tokens: the wide matrix first is up to a sixth faster.
        logits = (words @ x.flatten(0, 1).mT).mT.unflatten(0, x.shape[:2])
        logits = logits if self.bias is None else logits + self.bias
        return logits if self.cap is None else self.cap * (logits / self.cap).tanh()


class MaskedTransform(nn.Module):
    """The extra layer in the head of a masked language model: linear, activation, norm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.proj = nn.Linear(config.d_model, config.d_model)
        self.activation = ACTIVATION_FUNCTIONS[config.activation]
        self.norm = build_norm(config)

    def forward(self, x: Stream) -> Stream:
        return self.norm(self.activation(self.proj(x)))


class ClassifierHead(nn.Module):
    """Logits of the classes, from the vector of one token or the mean over all real ones."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pooling = POOLINGS[config.pooling]
        width = config.d_classifier
        self.hidden = None if width is None else nn.Linear(config.d_model, width)
        self.activation = getattr(torch, config.classifier_activation)
        self.dropout = nn.Dropout(config.dropout)
        self.out = nn.Linear(width or config.d_model, config.n_classes, config.classifier_bias)

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
