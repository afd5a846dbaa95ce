"""Each letter follows from the one before it, but after x, y and z the letter before them returns.

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

LENGTH, TRIGGER_CHANCE = 32, 0.15
TOKENIZER = character_tokenizer(string.ascii_lowercase, lowercase=True)
A, X = map(TOKENIZER.id_of, "ax")


@cache
def letter_chances() -> Tensor:
    """The chance after each letter of each letter or one that is earlier in the alphabet."""
    logits = 2 * torch.randn(26, X - A, generator=torch.Generator().manual_seed(0))
    triggers = torch.full((26, 3), TRIGGER_CHANCE / 3)
    return torch.cat([logits.softmax(-1) * (1 - TRIGGER_CHANCE), triggers], dim=-1).cumsum(-1)


def right_copies(model: Transformer, batch: Batch) -> Score:
    """The labels after x, y and z that are the likeliest token."""
    labels = batch.labels.where(batch.inputs[0] >= X, IGNORE)
    return token_accuracy(model, replace(batch, labels=labels))


@dataclass(frozen=True, eq=False, kw_only=True)
class Backcopy(GeneratedTask):
    """Every letter has a label, so a head must not disturb where it copies nothing."""

    metric = ("right copies", right_copies)
    kind: ClassVar[str] = "decoder"
    sizes: ClassVar[Sizes] = SMALL | {"n_layers": 2, "n_heads": 2, "max_len": LENGTH}
    steps: ClassVar[int] = 300
    lr: ClassVar[float] = 8e-3

    name: str = "backcopy"
    title: str = "Copy after x, y or z"
    explanation: str = (
        "Each letter makes some letters likely to come next. But after x, y or z the letter before "
        "it comes again, as in axa: only there does the model have to look back."
    )
    expectation: str = (
        "At x, y and z a head of layer 1 attends to the letter before. At other letters it has "
        "nothing to do and attends to the first token: an attention sink."
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
        letters = [torch.randint(X - A, (count,), generator=random)]
        for chance in torch.rand(LENGTH - 1, count, 1, generator=random):
            *before, last = letters[-2:]
            likely = (letter_chances()[last] < chance).sum(-1).clamp(max=25)
            letters.append(likely.where(last < X - A, before[0]) if before else likely)
        return torch.stack(letters, dim=-1) + A

    def batch_of(self, rows: Rows, random: torch.Generator | None) -> Batch:
        start = torch.full((len(rows), 1), self.tokenizer.id_of(BOS))
        return Batch((torch.cat([start, rows[:, :-1]], dim=1),), rows)

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        """Each x, y and z attends to the letter before it."""
        copies = [token.id >= X and place > 1 for place, token in enumerate(source)]
        return torch.eye(len(source)).roll(-1, dims=1) * torch.tensor(copies)[:, None]
