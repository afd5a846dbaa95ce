"""Write the letters of a word in alphabetical order: attention by content, not by position."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.tasks.letters import LetterTask, Words, letter_model, letter_tokenizer
from explorer.text import Token
from explorer.text.token import PAD
from models.config import TrainConfig


@dataclass(frozen=True, eq=False, kw_only=True)
class Sort(LetterTask):
    def rewritten(self, words: Words) -> Words:
        pad = self.tokenizer.id_of(PAD)
        beyond = self.tokenizer.vocab_size
        ordered = words.masked_fill(words == pad, beyond).sort(dim=-1).values
        return ordered.masked_fill(ordered == beyond, pad)

    def pattern(
        self, source: Sequence[Token], target: Sequence[Token] = ()
    ) -> Float[Tensor, "q k"] | None:
        """Each output letter attends to the same letter, wherever it is; equal letters share."""
        letters = [token.id for token in source if not token.special]
        expected = torch.zeros(len(target), len(source))
        for row, letter in enumerate(sorted(letters)[: len(target)]):
            places = [place for place, other in enumerate(letters) if other == letter]
            expected[row, places] = 1 / len(places)
        return expected


def build_sort() -> Sort:
    tokenizer = letter_tokenizer()
    return Sort(
        name="sort",
        title="Sort the letters",
        explanation=(
            "The model reads up to eight letters and writes them in alphabetical order. It has to "
            "know the alphabet and to find the next letter wherever it is."
        ),
        expectation=(
            "Cross-attention follows the content: each output letter attends to the same letter in "
            "the word, and there is no diagonal."
        ),
        examples=("sorting", "zebra", "hgfedcba", "banana"),
        tokenizer=tokenizer,
        model=letter_model(tokenizer),
        training=TrainConfig(steps=1200, batch_size=64, lr=5e-3, warmup=50, schedule="linear"),
        goal=0.99,
    )
