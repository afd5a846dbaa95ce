"""Softmax where logits belong: over the wrong dimension, or once too often."""

import math

from jaxtyping import Bool, Float
from torch import Tensor

from explorer.views.museum.mistakes.model_copy import with_mistake
from models.config import TransformerConfig
from models.model import Transformer
from models.output_heads import ClassifierHead, LanguageModelHead
from models.tap import NO_TAP, Tap


class SoftmaxWords(LanguageModelHead):
    """A language-model head that ends in a softmax over the dimension `dim`: the vocabulary."""

    dim = -1

    def forward(
        self, x: Float[Tensor, "b t d"], embedding: Float[Tensor, "v d"], tap: Tap = NO_TAP
    ) -> Float[Tensor, "b t v"]:
        return super().forward(x, embedding, tap).softmax(self.dim)


class SoftmaxBatch(SoftmaxWords):
    """The softmax over the batch, torch's default for three dimensions."""

    dim = 0


class SoftmaxClasses(ClassifierHead):
    """A classifier that ends in a softmax."""

    def forward(
        self,
        x: Float[Tensor, "b t d"],
        keep: Bool[Tensor, "b t"] | None = None,
        tap: Tap = NO_TAP,
    ) -> Float[Tensor, "b c"]:
        return super().forward(x, keep, tap).softmax(-1)


def softmax_over_the_batch(model: Transformer) -> Transformer:
    return with_mistake(model, LanguageModelHead, SoftmaxBatch)


def softmax_inside(model: Transformer) -> Transformer:
    if isinstance(model.head, LanguageModelHead):
        return with_mistake(model, LanguageModelHead, SoftmaxWords)
    return with_mistake(model, ClassifierHead, SoftmaxClasses)


def lowest_loss(options: int) -> float:
    """The least cross-entropy, in nats, of a softmax over `options`: all on the right one.

    log(e + options − 1) − 1, where logits could reach 0.
    """
    return math.log(math.e + options - 1) - 1


def needs_words(config: TransformerConfig) -> str | None:
    if config.head != "language-model":
        return "it has no logits of the vocabulary at every position"
    return None


def needs_logits(config: TransformerConfig) -> str | None:
    return "it has no head" if config.head == "none" else None
