"""Words of random letters that an encoder-decoder rewrites: reverse, copy, sort."""

import string
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from explorer.tasks.batches import pair_batch
from explorer.tasks.held_out import draw_held_out, draw_training
from explorer.tasks.task import Task, generator
from explorer.tasks.task_metrics import exact_match
from explorer.tasks.task_models import encoder_decoder
from explorer.text import SOURCE, Token, Tokenizer, character_tokenizer
from explorer.text.token import PAD
from models.config import TrainConfig, TransformerConfig
from models.training import Batch

MAX_LETTERS = 8
HELD_OUT = 256

Words = Int[Tensor, "b t"]


@dataclass(frozen=True, eq=False, kw_only=True)
class LetterTask(Task):
    """Words of one to eight letters; `rewritten` gives the answers."""

    metric = ("exact match", exact_match)

    held_out: str = "one word in eight, chosen by a hash of its letters"
    pattern_site: str = "decoder.0.cross_attn"

    @abstractmethod
    def rewritten(self, words: Words) -> Words:
        """The answers, padded at the end like the words."""

    def answer(self, source: Sequence[Token]) -> Sequence[Token]:
        letters = {token.id: token for token in source if not token.special}
        ids = [token.id for token in source if not token.special]
        rewritten = self.rewritten(torch.tensor([ids], dtype=torch.long))[0].tolist() if ids else []
        return [*(letters[each] for each in rewritten), *(t for t in source[-1:] if t.special)]

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random = generator(training.seed, step)
        words = draw_training(lambda count: self.draw(count, random), training.batch_size)
        return pair_batch(self.tokenizer, words, self.rewritten(words))

    @cached_property
    def held_out_batch(self) -> Batch:
        random = generator(seed=0, step=0)
        words = draw_held_out(lambda count: self.draw(count, random), HELD_OUT)
        return pair_batch(self.tokenizer, words, self.rewritten(words))

    def draw(self, count: int, random: torch.Generator) -> Words:
        """Random words of random lengths, padded at the end."""
        first = self.tokenizer.id_of("a")
        letters = torch.randint(first, first + 26, (count, MAX_LETTERS), generator=random)
        lengths = torch.randint(1, MAX_LETTERS + 1, (count, 1), generator=random)
        return letters.masked_fill(torch.arange(MAX_LETTERS) >= lengths, self.tokenizer.id_of(PAD))


def letter_tokenizer() -> Tokenizer:
    return character_tokenizer(string.ascii_lowercase, SOURCE, lowercase=True)


def letter_model(tokenizer: Tokenizer) -> TransformerConfig:
    """One encoder and one decoder layer: the smallest model with cross-attention.

    Embeddings are not scaled up, so that positions weigh as much as letters.
    """
    return encoder_decoder(
        tokenizer,
        d_model=64,
        n_layers=1,
        n_heads=4,
        d_ff=128,
        max_len=MAX_LETTERS + 1,
        scale_embedding=False,
    )
