"""Is the sentence positive? An adjective decides, and a negation reverses it.

With two classes a model could call positive whatever has no negative word; the neutral
class prevents that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.tasks.batches import sample_rows, sentence_rows, trimmed
from explorer.tasks.held_out import is_held_out
from explorer.tasks.task import Task, generator
from explorer.tasks.task_metrics import accuracy
from explorer.tasks.task_models import classifier
from explorer.text import CLASSIFIER, Token, word_tokenizer
from models.config import TrainConfig
from models.training import Batch

SUBJECTS = ("film", "food", "room", "service", "book", "music", "hotel", "story")
LINKING_VERBS = ("is", "was", "seems")
NEGATORS = ("", "not", "never")
DEGREES = ("", "very", "really", "so")
NEUTRAL = ("long", "short", "old", "new", "local", "modern", "foreign", "small")
POSITIVE = ("good", "great", "lovely", "fine", "brilliant", "charming", "wonderful", "pleasant")
NEGATIVE = ("bad", "awful", "boring", "poor", "dull", "terrible", "dreadful", "horrible")

ADJECTIVES = (*NEGATIVE, *NEUTRAL, *POSITIVE)
WORDS = ("the", *SUBJECTS, *LINKING_VERBS, *NEGATORS, *DEGREES, *ADJECTIVES)
CLASSES = ("negative", "neutral", "positive")


@dataclass(frozen=True, eq=False, kw_only=True)
class Negation(Task):
    """Every sentence of the grammar, one in eight of them held out."""

    metric = ("accuracy", accuracy)

    @cached_property
    def sentences(self) -> Batch:
        """All of them in a fixed order."""
        texts, labels = [], []
        for subject, verb, negator, degree, adjective in product(
            SUBJECTS, LINKING_VERBS, NEGATORS, DEGREES, ADJECTIVES
        ):
            texts.append(f"the {subject} {verb} {negator} {degree} {adjective}")
            labels.append(class_of(adjective, bool(negator)))
        return Batch((sentence_rows(self.tokenizer, texts),), torch.tensor(labels))

    @cached_property
    def training_rows(self) -> Batch:
        return self._where(~is_held_out(self.sentences.inputs[0]))

    @cached_property
    def held_out_batch(self) -> Batch:
        return self._where(is_held_out(self.sentences.inputs[0]))

    @property
    def training_size(self) -> int:
        return len(self.training_rows.labels)

    def batch(self, step: int, training: TrainConfig) -> Batch:
        rows, labels = self.training_rows.inputs[0], self.training_rows.labels
        chosen = sample_rows(training.batch_size, len(rows), generator(training.seed, step))
        return Batch((trimmed(rows[chosen]),), labels[chosen])

    def pattern(
        self, source: Sequence[Token], target: Sequence[Token] = ()
    ) -> Float[Tensor, "q k"] | None:
        """`<cls>` attends to the adjective and to the negator, all heads together."""
        telling = {*ADJECTIVES, *NEGATORS}
        expected = torch.zeros(len(source), len(source))
        expected[0] = torch.tensor([float(token.label in telling) for token in source])
        return expected / expected.sum(-1, keepdim=True).clamp(min=1)

    def _where(self, chosen: Tensor) -> Batch:
        return Batch((self.sentences.inputs[0][chosen],), self.sentences.labels[chosen])


def class_of(adjective: str, negated: bool) -> int:
    """The index of the class: negation swaps positive and negative and keeps neutral."""
    mood = (adjective in POSITIVE) - (adjective in NEGATIVE)
    return 1 - mood if negated else 1 + mood


def build_negation() -> Negation:
    tokenizer = word_tokenizer([word for word in WORDS if word], CLASSIFIER, lowercase=True)
    return Negation(
        name="negation",
        title="Sentiment with negation",
        explanation=(
            "The model says whether a short sentence is positive, negative or neutral. Good is "
            "positive and not good is negative, so neither word is enough alone. The model has no "
            "positions: in these sentences the order of the words says nothing."
        ),
        expectation=(
            "The first token, <cls>, attends to the adjective and to not or never, often with one "
            "head for each."
        ),
        examples=(
            "the food was not very good",
            "the hotel is never boring",
            "the film was really awful",
            "the music seems pleasant",
        ),
        tokenizer=tokenizer,
        model=classifier(
            tokenizer,
            CLASSES,
            d_model=32,
            n_layers=1,
            n_heads=2,
            d_ff=128,
            max_len=16,
            positions="none",
            scale_embedding=False,
        ),
        training=TrainConfig(steps=400, batch_size=64, lr=5e-3, warmup=50, schedule="linear"),
        goal=0.99,
        held_out="one sentence in eight, chosen by a hash of its words",
        classes=CLASSES,
        pattern_site="encoder.0.self_attn",
    )
