"""A small grammar of English to French: word order and gender make the attention cross."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import ClassVar

import torch

from explorer.tasks import french
from explorer.tasks.batches import PairRows, pair_batch, pair_rows, sampled_pairs
from explorer.tasks.task import SMALL, BuiltinTask, Pattern, Sizes, Tokens, generator
from explorer.tasks.task_metrics import exact_match
from explorer.text import SOURCE, TrainedWith, word_tokenizer
from models.config import TrainConfig
from models.training import Batch

TRAINING_SENTENCES = 8192
HELD_OUT_SENTENCES = 512
TRANSLATION_TOKENS = 12


@dataclass(frozen=True, eq=False, kw_only=True)
class TranslationTask(BuiltinTask):
    """All sentences with certain adjective-noun pairs are held out."""

    metric = ("exact match", exact_match)
    sizes: ClassVar[Sizes] = SMALL | {
        "n_heads": 2,
        "max_len": TRANSLATION_TOKENS,
        "scale_embedding": True,
    }
    steps: ClassVar[int] = 300
    lr: ClassVar[float] = 3e-3

    name: str = "translation"
    title: str = "English to French"
    explanation: str = (
        "The model translates sentences of a small grammar. In French the adjective follows its "
        "noun, article and adjective take the noun's gender, and ne … pas surrounds the verb. Some "
        "pairs of adjective and noun never occur in training."
    )
    expectation: str = (
        "Cross-attention aligns words by meaning, so it leaves the diagonal where the word order "
        "differs: adjectives follow their noun in French and precede it in English."
    )
    examples: tuple[str, ...] = (
        "the black cat does not see the white house",
        "the grey mouse finds a green hat",
        "the girl wants the blue flower",
        "the white dog does not eat a rabbit",
        "the cow sleeps",
        "the black dog does not see the white house",
    )
    goal: float = 0.99
    held_out: str = "every sentence with one of nine adjective-noun pairs"
    pattern_site: str = "decoder.0.cross_attn"
    first_answer: int = 2  # of the first example, “noir”: its word is not at its place in English

    @classmethod
    def vocabulary(cls) -> TrainedWith:
        words = french.english_words() | french.french_words()
        return word_tokenizer(words, SOURCE, lowercase=True)

    @cached_property
    def training_rows(self) -> PairRows:
        return self._rows(held_out=False, count=TRAINING_SENTENCES)

    @cached_property
    def held_out_batch(self) -> Batch:
        return pair_batch(self.tokenizer, *self._rows(held_out=True, count=HELD_OUT_SENTENCES))

    @property
    def training_size(self) -> int:
        return TRAINING_SENTENCES

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random = generator(training.seed, step)
        return sampled_pairs(self.tokenizer, self.training_rows, training.batch_size, random)

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        """Each French word attends to its English words, as long as the output is right."""
        translation = french.translate([token.label for token in source if not token.special])
        if translation is None:
            return None
        expected = torch.zeros(len(target), len(source))
        words = [token.label for token in target[1:]]
        for row, places in enumerate(translation.alignment[: len(target)]):
            if words[:row] == list(translation.french[:row]):
                expected[row, list(places)] = 1 / len(places)
        return expected

    def answer(self, source: Tokens) -> Tokens:
        translation = french.translate([token.label for token in source if not token.special])
        return self.answer_of(translation.french, source) if translation else ()

    def _rows(self, held_out: bool, count: int) -> PairRows:
        texts = islice(translation_sentences(held_out), count)
        pairs = ((text, " ".join(_translate(text).french)) for text in texts)
        return pair_rows(self.tokenizer, pairs)


def translation_sentences(held_out: bool) -> Iterator[str]:
    """An endless series of distinct sentences in a fixed order, held out or not."""
    rng = random.Random(0)
    sentences: set[str] = set()
    while True:
        text = french.random_sentence(rng)
        if text not in sentences and is_held_out_sentence(text) == held_out:
            sentences.add(text)
            yield text


def is_held_out_sentence(text: str) -> bool:
    return any(map(french.is_held_out_pair, _translate(text).pairs))


def _translate(text: str) -> french.Translation:
    translation = french.translate(text.split())
    assert translation is not None, text
    return translation
