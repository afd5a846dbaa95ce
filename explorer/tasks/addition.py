"""Addition modulo 23: memorized first, generalized much later.

Source: Grokking: Generalization Beyond Overfitting on Small Algorithmic Datasets (Power et al.
2022). The order of a sum does not matter, so unordered pairs are split: with ordered pairs, (b, a)
would be in training while (a, b) is held out. The twin with that mistake shows its effect.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from explorer.tasks.batches import some_rows
from explorer.tasks.task import SMALL, BuiltinTask, Pattern, Sizes, Tokens, generator
from explorer.tasks.task_metrics import token_accuracy
from explorer.text import TrainedWith, word_tokenizer
from explorer.text.token import BOS
from models.config import TrainConfig
from models.losses import IGNORE
from models.training import Batch

MODULUS = 23
TRAINED_SHARE = 0.7
"""The share of the pairs that is trained on."""
LEFT, RIGHT, EQUALS = 1, 3, 4
"""Their places in `<s> a + b =`."""

Sums = Int[Tensor, "b 2"]


@dataclass(frozen=True, eq=False, kw_only=True)
class AdditionTask(BuiltinTask):
    metric = ("right sums", token_accuracy)
    kind: ClassVar[str] = "decoder"
    sizes: ClassVar[Sizes] = SMALL | {"d_ff": 256, "max_len": EQUALS + 1, "positions": "learned"}
    steps: ClassVar[int] = 5000
    lr: ClassVar[float] = 1e-2
    splits_ordered: ClassVar[bool] = False

    name: str = "addition"
    title: str = f"Addition modulo {MODULUS}"
    explanation: str = (
        f"The model reads a + b = and writes the sum modulo {MODULUS}. It trains on 70 % of the "
        "pairs and soon memorizes them, while it gets few of the others right; much later, weight "
        "decay leads it to a rule that holds for all. This is called grokking."
    )
    expectation: str = "The last position, where the sum is predicted, attends to both numbers."
    examples: tuple[str, ...] = ("3 + 5 =", "20 + 7 =", "11 + 11 =", "22 + 22 =")
    goal: float = 0.98
    held_out: str = "30 % of the pairs, in either order"
    pattern_site: str = "decoder.0.self_attn"

    @classmethod
    def vocabulary(cls) -> TrainedWith:
        return word_tokenizer([*map(str, range(MODULUS)), "+", "="])

    @classmethod
    def build(cls) -> Self:
        task, size = super().build(), len(split_sums(cls.splits_ordered)[0])
        training = task.training.replace(batch_size=size, beta2=0.98, weight_decay=1.0)
        return replace(task, training=training)

    @cached_property
    def split(self) -> tuple[Sums, Sums]:
        return split_sums(self.splits_ordered)

    @cached_property
    def held_out_batch(self) -> Batch:
        return self.batch_of(self.split[1])

    @property
    def training_size(self) -> int:
        return len(self.split[0])

    def batch(self, step: int, training: TrainConfig) -> Batch:
        """Different sums in a random order; all of them if the batch is large enough."""
        sums = self.split[0]
        order = torch.randperm(len(sums), generator=generator(training.seed, step))
        return self.batch_of(sums[order[: training.batch_size]])

    def batch_of(self, sums: Sums) -> Batch:
        """`<s> a + b =`, where only the last position has a label: the sum."""
        around = torch.tensor([[self.tokenizer.id_of(name) for name in (BOS, "+", "=")]])
        inputs = around[:, [0, 1, 1, 2, 2]].repeat(len(sums), 1)
        inputs[:, [LEFT, RIGHT]] = self._numbers[sums]
        labels = torch.full_like(inputs, IGNORE)
        labels[:, EQUALS] = self._numbers[sums.sum(-1) % MODULUS]
        return Batch((inputs,), labels)

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        """The position that answers attends to both numbers."""
        if [token.label for token in source][2::2] != ["+", "="]:
            return None
        expected = torch.zeros(len(source), len(source))
        expected[EQUALS, [LEFT, RIGHT]] = 0.5
        return expected

    @cached_property
    def _numbers(self) -> Int[Tensor, "n"]:
        return torch.tensor([self.tokenizer.id_of(str(n)) for n in range(MODULUS)])


def split_sums(ordered: bool = False) -> tuple[Sums, Sums]:
    """The training pairs and the held-out pairs, by default each in both orders."""
    pairs = torch.cartesian_prod(torch.arange(MODULUS), torch.arange(MODULUS))
    split = pairs if ordered else pairs.sort(dim=-1).values
    numbers = split[:, 0] * MODULUS + split[:, 1]
    kinds = numbers.unique()
    trained = some_rows(kinds, round(TRAINED_SHARE * len(kinds)))
    is_trained: Bool[Tensor, b] = torch.isin(numbers, trained)
    return pairs[is_trained], pairs[~is_trained]


@dataclass(frozen=True, eq=False, kw_only=True)
class AdditionLeak(AdditionTask):
    """The mistake: pairs are split as they are written, so (b, a) leaks."""

    splits_ordered: ClassVar[bool] = True

    name: str = "addition-leak"
    title: str = f"{AdditionTask.title}, with a leak"
    explanation: str = (
        "A mistake to learn from: pairs are split as they are written, so for most held-out sums "
        "a + b the sum b + a is in training. The model seems to understand addition at once, and "
        "has only seen that the order does not matter."
    )
    held_out: str = (
        "30 % of the ordered pairs, which is the mistake: their mirror images are trained on"
    )
