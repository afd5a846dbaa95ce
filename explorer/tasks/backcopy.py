"""Letters that follow from the one before, and three after which a letter comes again.

A head that copies has nothing to do at other letters, and attends to the first token there.
Source: Active-Dormant Attention Heads (Guo et al. 2024), where it is called Bigram-Backcopy.
"""

import string
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import torch
from torch import Tensor

from explorer.tasks.batches import Rows
from explorer.tasks.task import SMALL, GeneratedTask, Pattern, Sizes, Tokens
from explorer.tasks.task_metrics import Score, token_accuracy
from explorer.text import TrainedWith, character_tokenizer
from explorer.text.token import BOS
from models.losses import IGNORE
from models.model import Transformer
from models.training import Batch

LENGTH = 32
TRIGGERS, TRIGGER_CHANCE = "xyz", 0.15
OTHERS = 26 - len(TRIGGERS)
TOKENIZER = character_tokenizer(string.ascii_lowercase, lowercase=True)
FIRST, FIRST_TRIGGER = map(TOKENIZER.id_of, ("a", TRIGGERS[0]))
SHARPNESS = 2.0
"""The standard deviation of the logits of the chances, which makes few letters likely."""


def right_copies(model: Transformer, batch: Batch) -> Score:
    """The letters after x, y and z that are the likeliest token."""
    is_copied = batch.inputs[0] >= FIRST_TRIGGER
    return token_accuracy(model, replace(batch, labels=batch.labels.where(is_copied, IGNORE)))


@cache
def letter_chances() -> Tensor:
    """The chance of each letter, or an earlier one, after each letter, (26, 26)."""
    random = torch.Generator().manual_seed(0)
    usual = (SHARPNESS * torch.randn(26, OTHERS, generator=random)).softmax(-1)
    triggers = torch.full((26, len(TRIGGERS)), TRIGGER_CHANCE / len(TRIGGERS))
    return torch.cat([usual * (1 - TRIGGER_CHANCE), triggers], dim=-1).cumsum(-1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Backcopy(GeneratedTask):
    """Every letter has a label, so a head must not disturb where it copies nothing."""

    metric = ("right copies", right_copies)
    kind: ClassVar[str] = "decoder"
    sizes: ClassVar[Sizes] = SMALL | {
        "n_layers": 2,
        "n_heads": 2,
        "max_len": LENGTH,
        "positions": "sinusoidal",
    }
    steps: ClassVar[int] = 300
    lr: ClassVar[float] = 8e-3

    name: str = "backcopy"
    title: str = "Copy after x, y or z"
    explanation: str = (
        "Each letter is likely after some letters and unlikely after others. But after x, y or z "
        "the letter before it comes again: a x a. Only there is anything to attend to."
    )
    expectation: str = (
        "At x, y and z a head of layer 1 attends to the letter before. At all other letters it has "
        "nothing to do, and much of its weight goes to the first token: an attention sink."
    )
    examples: tuple[str, ...] = (
        *("gtpopjsawtztpftpopmbwrcndayaxan", "lxlbhdatpipypmgkaoxoppikfbwmfmg"),
        *("cnrcnrzrcndaeeyeqxqssweeopopmss", "bgzgicnsfelmfmfhtpfyfzfcycnin"),
    )
    goal: float = 0.99
    held_out: str = "one text in eight, chosen by a hash of its letters"
    pattern_site: str = "decoder.1.self_attn"

    @classmethod
    def vocabulary(cls) -> TrainedWith:
        return TOKENIZER

    def draw(self, count: int, random: torch.Generator) -> Rows:
        chances = torch.rand(count, LENGTH, 1, generator=random)
        letters = [torch.randint(OTHERS, (count,), generator=random)]
        for place in range(1, LENGTH):
            last = letters[-1]
            drawn = (letter_chances()[last] < chances[:, place]).sum(-1).clamp(max=25)
            letters.append(drawn.where(last < OTHERS, letters[place - 2]))
        return torch.stack(letters, dim=-1) + FIRST

    def batch_of(self, rows: Rows, random: torch.Generator | None) -> Batch:
        start = torch.full((len(rows), 1), self.tokenizer.id_of(BOS))
        return Batch((torch.cat([start, rows[:, :-1]], dim=1),), rows)

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        """Each x, y and z attends to the letter before it."""
        expected = torch.zeros(len(source), len(source))
        for place, token in enumerate(source):
            if place > 1 and token.label in TRIGGERS:
                expected[place, place - 1] = 1.0
        return expected
