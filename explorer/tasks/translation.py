"""A small grammar of English to French: word order and gender make the attention cross."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.tasks import french
from explorer.tasks.batches import Rows, pair_batch, sample_rows, sentence_rows, trimmed
from explorer.tasks.task import Task, generator
from explorer.tasks.task_metrics import exact_match
from explorer.tasks.task_models import encoder_decoder
from explorer.text import SOURCE, Token, word_tokenizer
from models.config import TrainConfig
from models.training import Batch

TRAINING_SENTENCES = 8192
HELD_OUT_SENTENCES = 512
TRANSLATION_TOKENS = 12


@dataclass(frozen=True, eq=False, kw_only=True)
class TranslationTask(Task):
    """Sentences with certain adjective-noun pairs are held out, all of them."""

    metric = ("exact match", exact_match)

    @cached_property
    def training_rows(self) -> tuple[Rows, Rows]:
        return self._rows(islice(translation_sentences(held_out=False), TRAINING_SENTENCES))

    @cached_property
    def held_out_batch(self) -> Batch:
        return pair_batch(
            self.tokenizer,
            *self._rows(islice(translation_sentences(held_out=True), HELD_OUT_SENTENCES)),
        )

    @property
    def training_size(self) -> int:
        return TRAINING_SENTENCES

    def batch(self, step: int, training: TrainConfig) -> Batch:
        source, target = self.training_rows
        chosen = sample_rows(training.batch_size, len(source), generator(training.seed, step))
        return pair_batch(self.tokenizer, trimmed(source[chosen]), trimmed(target[chosen]))

    def pattern(
        self, source: Sequence[Token], target: Sequence[Token] = ()
    ) -> Float[Tensor, "q k"] | None:
        """Each French word attends to its English words, while the output follows the rules."""
        translation = french.translate([token.label for token in source if not token.special])
        if translation is None:
            return None
        expected = torch.zeros(len(target), len(source))
        written = [token.label for token in target[1:]]
        for row, places in enumerate(translation.alignment[: len(target)]):
            if written[:row] == list(translation.french[:row]):
                expected[row, list(places)] = 1 / len(places)
        return expected

    def answer(self, source: Sequence[Token]) -> Sequence[Token]:
        translation = french.translate([token.label for token in source if not token.special])
        words = translation.french if translation else ()
        written = [Token(self.tokenizer.id_of(word), word) for word in words]
        return [*written, *(t for t in source[-1:] if t.special)] if written else ()

    def _rows(self, texts: Iterator[str]) -> tuple[Rows, Rows]:
        english = list(texts)
        answers = [" ".join(_translated(text).french) for text in english]
        return (
            sentence_rows(self.tokenizer, english, special=False),
            sentence_rows(self.tokenizer, answers, special=False),
        )


def translation_sentences(held_out: bool) -> Iterator[str]:
    """Different sentences without end, in a fixed order, held out or not."""
    rng = random.Random(0)
    seen: set[str] = set()
    while True:
        text = french.random_sentence(rng)
        if text not in seen and is_held_out_sentence(text) == held_out:
            seen.add(text)
            yield text


def is_held_out_sentence(text: str) -> bool:
    return any(map(french.is_held_out_pair, _translated(text).pairs))


def _translated(text: str) -> french.Translation:
    translation = french.translate(text.split())
    assert translation is not None, text
    return translation


def build_translation() -> TranslationTask:
    words = french.english_words() | french.french_words()
    tokenizer = word_tokenizer(words, SOURCE, lowercase=True)
    return TranslationTask(
        name="translation",
        title="English to French",
        explanation=(
            "The model translates sentences of a small grammar. In French the adjective follows "
            "its noun, article and adjective take the noun's gender, and ne … pas surrounds the "
            "verb. Some pairs of adjective and noun never occur in training."
        ),
        expectation=(
            "Cross-attention aligns words by meaning, so it leaves the diagonal where the word "
            "order differs: adjectives follow their noun in French and precede it in English."
        ),
        examples=(
            "the black cat does not see the white house",
            "the grey mouse finds a green hat",
            "the girl wants the blue flower",
            "the white dog does not eat a rabbit",
            "the cow sleeps",
        ),
        tokenizer=tokenizer,
        model=encoder_decoder(
            tokenizer,
            d_model=64,
            n_layers=1,
            n_heads=2,
            d_ff=128,
            max_len=TRANSLATION_TOKENS,
        ),
        training=TrainConfig(steps=300, batch_size=64, lr=3e-3, warmup=50, schedule="linear"),
        goal=0.99,
        held_out="every sentence with one of nine adjective-noun pairs",
        pattern_site="decoder.0.cross_attn",
    )
