"""Write a word again: the simplest use of cross-attention."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.tasks.letters import LetterTask, Words, letter_model, letter_tokenizer
from explorer.text import Token
from models.config import TrainConfig


@dataclass(frozen=True, eq=False, kw_only=True)
class Copy(LetterTask):
    def rewritten(self, words: Words) -> Words:
        return words

    def pattern(
        self, source: Sequence[Token], target: Sequence[Token] = ()
    ) -> Float[Tensor, "q k"] | None:
        expected = torch.zeros(len(target), len(source))
        expected.fill_diagonal_(1.0)
        expected[:, len(source) - 1] = 0.0
        return expected


def build_copy() -> Copy:
    tokenizer = letter_tokenizer()
    return Copy(
        name="copy",
        title="Copy a word",
        explanation="The model reads up to eight letters and writes the same letters again.",
        expectation=(
            "Cross-attention is on the diagonal: each output letter attends to the letter at the "
            "same position."
        ),
        examples=("copy", "mirror", "abcdefgh", "hello"),
        tokenizer=tokenizer,
        model=letter_model(tokenizer),
        training=TrainConfig(steps=200, batch_size=64, lr=5e-3, warmup=50, schedule="linear"),
        goal=0.99,
    )
