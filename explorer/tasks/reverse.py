"""Write a word backwards: attention has to run against the text."""

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
class Reverse(LetterTask):
    def rewritten(self, words: Words) -> Words:
        pad = self.tokenizer.id_of(PAD)
        lengths = (words != pad).sum(-1, keepdim=True)
        backwards = lengths - 1 - torch.arange(words.shape[1])
        letters = words.gather(1, backwards.clamp(min=0))
        return letters.masked_fill(backwards < 0, pad)

    def pattern(
        self, source: Sequence[Token], target: Sequence[Token] = ()
    ) -> Float[Tensor, "q k"] | None:
        letters = len(source) - 1
        expected = torch.zeros(len(target), len(source))
        for row in range(min(letters, len(target))):
            expected[row, letters - 1 - row] = 1.0
        return expected


def build_reverse() -> Reverse:
    tokenizer = letter_tokenizer()
    return Reverse(
        name="reverse",
        title="Reverse a word",
        explanation=(
            "The model reads up to eight letters and writes them backwards. Nothing about "
            "reversing is built in: it has to find the right letter at every step."
        ),
        expectation=(
            "Cross-attention is on the anti-diagonal: the first output letter attends to the last "
            "letter of the word."
        ),
        examples=("reverse", "stressed", "abcdefgh", "hello", "level"),
        tokenizer=tokenizer,
        model=letter_model(tokenizer),
        training=TrainConfig(steps=300, batch_size=64, lr=5e-3, warmup=50, schedule="linear"),
        goal=0.99,
    )
