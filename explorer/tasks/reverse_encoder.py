"""Write sixteen letters backwards, all at once: self-attention on the anti-diagonal."""

import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from explorer.tasks.batches import Rows
from explorer.tasks.held_out import draw_held_out, draw_training
from explorer.tasks.task import Task, generator
from explorer.tasks.task_metrics import token_accuracy
from explorer.text import ALONE, Token, character_tokenizer
from models.config import TrainConfig, TransformerConfig
from models.training import Batch

LETTERS_USED = 16
HELD_OUT = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class ReverseEncoder(Task):
    """Rows of sixteen letters; the label of position i is the letter at 15 − i."""

    metric = ("right letters", token_accuracy)

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random = generator(training.seed, step)
        return _mirrored(draw_training(lambda n: self.draw(n, random), training.batch_size))

    @cached_property
    def held_out_batch(self) -> Batch:
        random = generator(seed=0, step=0)
        return _mirrored(draw_held_out(lambda count: self.draw(count, random), HELD_OUT))

    def draw(self, count: int, random: torch.Generator) -> Rows:
        first = self.tokenizer.id_of("a")
        return torch.randint(first, first + 26, (count, LETTERS_USED), generator=random)

    def pattern(
        self, source: Sequence[Token], target: Sequence[Token] = ()
    ) -> Float[Tensor, "q k"] | None:
        """Each position attends to its mirror image, in a text as long as in training."""
        if len(source) != LETTERS_USED:
            return None
        return torch.eye(LETTERS_USED).flip(-1)


def _mirrored(rows: Rows) -> Batch:
    return Batch((rows,), rows.flip(-1))


def build_reverse_encoder() -> ReverseEncoder:
    tokenizer = character_tokenizer(string.ascii_lowercase, ALONE, lowercase=True)
    return ReverseEncoder(
        name="reverse-encoder",
        title="Reverse sixteen letters at once",
        explanation=(
            "An encoder reads sixteen letters and says at every position which letter is at the "
            "mirrored one. Nothing is written one after another, and one head is enough."
        ),
        expectation=(
            "Self-attention is on the anti-diagonal: each position attends to its mirror image."
        ),
        examples=("abcdefghijklmnop", "attentionreverse", "ponmlkjihgfedcba"),
        tokenizer=tokenizer,
        model=TransformerConfig(
            kind="encoder",
            vocab_size=tokenizer.vocab_size,
            d_model=32,
            n_layers=1,
            n_heads=1,
            d_ff=64,
            max_len=LETTERS_USED,
            scale_embedding=False,
            pad_id=tokenizer.pad_id,
        ),
        training=TrainConfig(steps=300, batch_size=64, lr=5e-3, warmup=50, schedule="linear"),
        goal=0.99,
        held_out="one text in eight, chosen by a hash of its letters",
        pattern_site="encoder.0.self_attn",
    )
