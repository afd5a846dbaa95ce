"""Is the sentence positive? An adjective decides, and a negation reverses it.

With two classes a model could call positive whatever has no negative word; the neutral
class prevents that.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar

import torch

from explorer.tasks.batches import is_held_out, sampled_batch, sentence_rows
from explorer.tasks.task import SMALLER, BuiltinTask, Pattern, Sizes, Tokens, generator
from explorer.tasks.task_metrics import accuracy
from explorer.text import CLASSIFIER, TrainedWith, word_tokenizer
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
class Negation(BuiltinTask):
    """Every sentence of the grammar, one in eight of them held out."""

    metric = ("accuracy", accuracy)
    kind: ClassVar[str] = "encoder"
    sizes: ClassVar[Sizes] = SMALLER | {"max_len": 16, "positions": "none"}
    steps: ClassVar[int] = 400

    name: str = "negation"
    title: str = "Sentiment with negation"
    explanation: str = (
        "The model says whether a short sentence is positive, negative or neutral. Good is "
        "positive and not good is negative, so neither word is enough alone. The model has no "
        "positions: in these sentences the order of the words says nothing."
    )
    expectation: str = (
        "The first token, <cls>, attends to the adjective and to not or never, often with one head "
        "for each."
    )
    examples: tuple[str, ...] = (
        "the food was not very good",
        "the hotel is never boring",
        "the film was really awful",
        "the music seems pleasant",
        "the film was not very boring",
    )
    goal: float = 0.99
    held_out: str = "one sentence in eight, always the same, by a hash of its words"
    classes: tuple[str, ...] = CLASSES
    pattern_site: str = "encoder.0.self_attn"

    @classmethod
    def vocabulary(cls) -> TrainedWith:
        return word_tokenizer([word for word in WORDS if word], CLASSIFIER, lowercase=True)

    @cached_property
    def sentences(self) -> Batch:
        """All of them in a fixed order."""
        texts, labels = [], []
        for subject, verb, negator, degree, adjective in product(
            SUBJECTS, LINKING_VERBS, NEGATORS, DEGREES, ADJECTIVES
        ):
            texts.append(f"the {subject} {verb} {negator} {degree} {adjective}")
            mood = (adjective in POSITIVE) - (adjective in NEGATIVE)
            labels.append(1 - mood if negator else 1 + mood)  # neutral stays neutral
        return Batch((sentence_rows(self.tokenizer, texts),), torch.tensor(labels))

    @cached_property
    def training_rows(self) -> Batch:
        return self.sentences.rows(~is_held_out(self.sentences.inputs[0]))

    @cached_property
    def held_out_batch(self) -> Batch:
        return self.sentences.rows(is_held_out(self.sentences.inputs[0]))

    @property
    def training_size(self) -> int:
        return len(self.training_rows.labels)

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random = generator(training.seed, step)
        return sampled_batch(self.training_rows, training.batch_size, random)

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        """`<cls>` attends to the adjective and to the negator, all heads together."""
        telling = {*ADJECTIVES, *NEGATORS}
        expected = torch.zeros(len(source), len(source))
        expected[0] = torch.tensor([float(token.label in telling) for token in source])
        return expected / expected.sum(-1, keepdim=True).clamp(min=1)
