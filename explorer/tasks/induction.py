"""Continue a repeated block: this needs two layers, and a control with one shows why.

The period differs from row to row. With a fixed one a single layer could attend to a
constant offset and would seem to have learned the same.
"""

import string
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from explorer.tasks.batches import Rows
from explorer.tasks.task import SMALL, GeneratedTask, Pattern, Sizes, Tokens
from explorer.tasks.task_metrics import Score, token_accuracy
from explorer.text import TrainedWith, character_tokenizer
from explorer.text.token import BOS
from models.losses import IGNORE
from models.model import Transformer
from models.training import Batch

LENGTH = 32
SHORTEST, LONGEST = 3, 12
PERIOD = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class Induction(GeneratedTask):
    """Each row repeats a block of different letters; only the repeats have labels."""

    metric = ("right on repeats", token_accuracy)
    kind: ClassVar[str] = "decoder"
    sizes: ClassVar[Sizes] = SMALL | {
        "n_layers": 2,
        "n_heads": 2,
        "d_ff": 0,
        "max_len": LENGTH,
        "positions": "sinusoidal",
    }
    steps: ClassVar[int] = 600
    lr: ClassVar[float] = 3e-3

    name: str = "induction"
    title: str = "Continue a repeat"
    explanation: str = (
        "A block of letters repeats, with another length each time, and the model predicts what "
        "comes next. It must find the previous copy of a letter and what followed it."
    )
    expectation: str = (
        "Layer 0 attends to the previous letter; layer 1 attends to the letter after the previous "
        "copy of the current one. Together they are called an induction head."
    )
    examples: tuple[str, ...] = (
        *("abcdeabcdeab", "kitchenkitchenkit", "qzxqzxqzx", "wordplaywordplay"),
    )
    goal: float = 0.99
    held_out: str = "one block in eight, with its rotations, always the same, by a hash of letters"
    pattern_site: str = "decoder.1.self_attn"

    @classmethod
    def vocabulary(cls) -> TrainedWith:
        return character_tokenizer(string.ascii_lowercase, lowercase=True)

    def draw(self, count: int, random: torch.Generator) -> Rows:
        order = torch.rand(count, 26, generator=random).argsort(dim=-1)
        periods = torch.randint(SHORTEST, LONGEST + 1, (count, 1), generator=random)
        blocks = order[:, :LONGEST] + self.tokenizer.id_of("a")
        return blocks.masked_fill(torch.arange(LONGEST) >= periods, 0)

    def identity(self, rows: Rows) -> Rows:
        return canonical(rows)

    def batch_of(self, rows: Rows, random: torch.Generator | None) -> Batch:
        """`<s>` and the block again and again. The first repeated letter is unpredictable."""
        periods = (rows != 0).sum(-1, keepdim=True)
        places = torch.arange(LENGTH).expand(len(rows), LENGTH)
        letters = rows.gather(1, places % periods)
        start = torch.full((len(rows), 1), self.tokenizer.id_of(BOS))
        inputs = torch.cat([start, letters[:, :-1]], dim=1)
        return Batch((inputs,), letters.masked_fill(places <= periods, IGNORE))

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        """Each repeated letter attends to what came after its previous copies."""
        expected = torch.zeros(len(source), len(source))
        for place, token in enumerate(source):
            copies = [before for before in range(place) if source[before].id == token.id]
            expected[place, [copy + 1 for copy in copies]] = 1 / max(1, len(copies))
        return expected


def canonical(blocks: Rows) -> Rows:
    """The block turned so that its smallest letter comes first.

    A repeated block contains all its rotations, so they are held out together.
    """
    periods = (blocks != 0).sum(-1, keepdim=True)
    beyond = torch.iinfo(blocks.dtype).max
    first = blocks.masked_fill(blocks == 0, beyond).argmin(dim=-1, keepdim=True)
    places = torch.arange(blocks.shape[1])
    return blocks.gather(1, (places + first) % periods).masked_fill(places >= periods, 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class InductionControl(Induction):
    sizes: ClassVar[Sizes] = Induction.sizes | {"n_layers": 1}

    name: str = "induction-control"
    title: str = "Continue a repeat, one layer"
    explanation: str = (
        "The same task with a single layer. It cannot first find out what came before each letter "
        "and then search for it, so it stays well below a model with two layers."
    )
    expectation: str = (
        "No head attends to the letter after the previous copy: one layer cannot search for it."
    )
    goal: float = 0.5
    pattern_site: str = "decoder.0.self_attn"


@dataclass(frozen=True, eq=False, kw_only=True)
class FixedPeriod(InductionControl):
    """Rows repeat a block of eight different letters."""

    name: str = "induction-fixed"
    title: str = "Continue a repeat, fixed period"
    explanation: str = (
        "A mistake to learn from: every row repeats after eight letters, so one layer answers all "
        "by what is seven tokens back. It has not learned to continue a repeat: type one that "
        "repeats after another number of letters."
    )
    expectation: str = (
        "One head attends seven tokens back, on a diagonal, whatever the letters are."
    )
    examples: tuple[str, ...] = ("abcdefghabcdefghabcd", "sunlightsunlightsun", "abcdeabcdeabcdeab")
    goal: float = 0.99

    def draw(self, count: int, random: torch.Generator) -> Rows:
        order = torch.rand(count, 26, generator=random).argsort(dim=-1)
        blocks = order[:, :PERIOD] + self.tokenizer.id_of("a")
        return torch.nn.functional.pad(blocks, (0, LONGEST - PERIOD))

    def pattern(self, source: Tokens, target: Tokens = ()) -> Pattern:
        """Seven tokens back, whatever is there; at first there is nothing so far back."""
        expected = torch.zeros(len(source), len(source))
        expected.diagonal(1 - PERIOD).fill_(1.0)
        expected[: PERIOD + 1] = 0.0
        return expected


LETTERS = character_tokenizer(string.ascii_lowercase, lowercase=True)
A, X = map(LETTERS.id_of, "ax")
USUAL = (2 * torch.randn(26, X - A, generator=torch.Generator().manual_seed(0))).softmax(-1)
CHANCES = torch.cat([0.85 * USUAL, torch.full((26, 3), 0.05)], dim=-1).cumsum(-1)
"""After each letter, the chance of each letter or one that is earlier in the alphabet."""


def right_copies(model: Transformer, batch: Batch) -> Score:
    """The labels after x, y and z that are the likeliest token."""
    labels = batch.labels.where(batch.inputs[0] >= X, IGNORE)
    return token_accuracy(model, replace(batch, labels=labels))


@dataclass(frozen=True, eq=False, kw_only=True)
class Backcopy(GeneratedTask):
    """After x, y and z the letter before comes again; elsewhere there is nothing to copy.

    Source: Active-Dormant Attention Heads (Guo et al. 2024), where it is called Bigram-Backcopy.
    """

    metric = ("right copies", right_copies)
    kind: ClassVar[str] = "decoder"
    sizes: ClassVar[Sizes] = Induction.sizes | {"d_ff": 128}
    steps: ClassVar[int] = 300
    lr: ClassVar[float] = 8e-3

    name: str = "backcopy"
    title: str = "Copy after x, y or z"
    explanation: str = (
        "Each letter makes some letters likely to come next. But after x, y or z the letter before "
        "it comes again, as in axa: only there does the model have to look back."
    )
    expectation: str = (
        "At x, y and z a head attends to the letter before. At other letters it has nothing to do "
        "and attends to the first token: an attention sink."
    )
    examples: tuple[str, ...] = (
        "gtpopjsawtztpftpopmbwrcndayaxan",
        "cnrcnrzrcndaeeyeqxqssweeopopms",
    )
    goal: float = 0.99
    held_out: str = "one text in eight, always the same, by a hash of its letters"

    @classmethod
    def vocabulary(cls) -> TrainedWith:
        return LETTERS

    def draw(self, count: int, random: torch.Generator) -> Rows:
        letters = [torch.randint(X - A, (count,), generator=random)]
        for chance in torch.rand(LENGTH - 1, count, 1, generator=random):
            before, last = letters[-2:][0], letters[-1]
            likely = (CHANCES[last] < chance).sum(-1).clamp(max=25)
            letters.append(likely.where(last < X - A, before))
        return torch.stack(letters, dim=-1) + A

    def batch_of(self, rows: Rows, random: torch.Generator | None) -> Batch:
        start = torch.full((len(rows), 1), self.tokenizer.id_of(BOS))
        return Batch((torch.cat([start, rows[:, :-1]], dim=1),), rows)
