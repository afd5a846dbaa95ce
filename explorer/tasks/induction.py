"""Continue a repeated block: needs two layers, and a control with one shows why.

The period differs from row to row. With a fixed one a single layer could attend to a
constant offset and would seem to have learned the same.
"""

import string
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from explorer.tasks.held_out import draw_held_out, draw_training
from explorer.tasks.task import Task, generator
from explorer.tasks.task_metrics import token_accuracy
from explorer.tasks.task_models import decoder
from explorer.text import Token, character_tokenizer
from explorer.text.token import BOS
from models.config import TrainConfig
from models.losses import IGNORE
from models.training import Batch

LENGTH = 32
SHORTEST, LONGEST = 3, 12
HELD_OUT = 256

Rows = Int[Tensor, "b t"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Induction(Task):
    """Rows repeat a block of different letters; only the repeats are labelled."""

    metric = ("right on repeats", token_accuracy)

    def batch(self, step: int, training: TrainConfig) -> Batch:
        random = generator(training.seed, step)
        blocks = draw_training(lambda n: self.draw(n, random), training.batch_size, canonical)
        return self.repeated(blocks)

    @cached_property
    def held_out_batch(self) -> Batch:
        random = generator(seed=0, step=0)
        blocks = draw_held_out(lambda count: self.draw(count, random), HELD_OUT, canonical)
        return self.repeated(blocks)

    def draw(self, count: int, random: torch.Generator) -> Rows:
        """Blocks of different letters, padded at the end with zeros."""
        first = self.tokenizer.id_of("a")
        order = torch.rand(count, 26, generator=random).argsort(dim=-1)
        periods = torch.randint(SHORTEST, LONGEST + 1, (count, 1), generator=random)
        blocks = order[:, :LONGEST] + first
        return blocks.masked_fill(torch.arange(LONGEST) >= periods, 0)

    def repeated(self, blocks: Rows) -> Batch:
        """`<s>` and the block again and again. The first repeated letter is unpredictable."""
        periods = (blocks != 0).sum(-1, keepdim=True)
        places = torch.arange(LENGTH).expand(len(blocks), LENGTH)
        letters = blocks.gather(1, places % periods)
        start = torch.full((len(blocks), 1), self.tokenizer.id_of(BOS))
        inputs = torch.cat([start, letters[:, :-1]], dim=1)
        return Batch((inputs,), letters.masked_fill(places <= periods, IGNORE))

    def pattern(
        self, source: Sequence[Token], target: Sequence[Token] = ()
    ) -> Float[Tensor, "q k"] | None:
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


def build_induction(n_layers: int = 2) -> Induction:
    tokenizer = character_tokenizer(string.ascii_lowercase, lowercase=True)
    control = n_layers == 1
    return Induction(
        name="induction-control" if control else "induction",
        title="Continue a repeat, one layer" if control else "Continue a repeat",
        explanation=(
            "The same task with a single layer. It cannot first find out what came before each "
            "letter and then search for it, so it stays well below a model with two layers."
            if control
            else "A block of letters repeats, with another length each time, and the model "
            "predicts what comes next. It must find the previous copy of a letter and what "
            "followed it."
        ),
        expectation=(
            "No head attends to the letter after the previous copy: one layer cannot search for it."
            if control
            else "Layer 0 attends to the previous letter; layer 1 attends to the letter after the "
            "previous copy of the current one. Together they are called an induction head."
        ),
        examples=("abcdeabcdeab", "kitchenkitchenkit", "qzxqzxqzx", "wordplaywordplay"),
        tokenizer=tokenizer,
        model=decoder(
            tokenizer,
            d_model=64,
            n_layers=n_layers,
            n_heads=2,
            d_ff=0,
            max_len=LENGTH,
            positions="sinusoidal",
            scale_embedding=False,
        ),
        training=TrainConfig(steps=600, batch_size=64, lr=3e-3, warmup=50, schedule="linear"),
        goal=0.99 if not control else 0.5,
        held_out="one block in eight with all its rotations, chosen by a hash of its letters",
        pattern_site=f"decoder.{n_layers - 1}.self_attn",
    )


def build_induction_control() -> Induction:
    return build_induction(n_layers=1)


PERIOD = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class FixedPeriod(Induction):
    """Rows repeat a block of eight different letters."""

    def draw(self, count: int, random: torch.Generator) -> Rows:
        first = self.tokenizer.id_of("a")
        order = torch.rand(count, 26, generator=random).argsort(dim=-1)
        return torch.nn.functional.pad(order[:, :PERIOD] + first, (0, LONGEST - PERIOD))

    def pattern(
        self, source: Sequence[Token], target: Sequence[Token] = ()
    ) -> Float[torch.Tensor, "q k"] | None:
        """Seven tokens back, whatever is there; at first there is nothing so far back."""
        expected = torch.zeros(len(source), len(source))
        expected.diagonal(1 - PERIOD).fill_(1.0)
        expected[: PERIOD + 1] = 0.0
        return expected


def build_fixed_period() -> FixedPeriod:
    one_layer = build_induction(n_layers=1)
    known = {each.name: getattr(one_layer, each.name) for each in fields(one_layer)}
    return FixedPeriod(
        **known
        | {
            "name": "induction-fixed",
            "title": "Continue a repeat, fixed period",
            "explanation": (
                "A mistake to learn from: every row repeats after eight letters, so one layer "
                "answers all by what is seven tokens back. It has not learned to continue a "
                "repeat: type one that repeats after another number of letters."
            ),
            "expectation": (
                "One head attends seven tokens back, on a diagonal, whatever the letters are."
            ),
            "examples": ("abcdefghabcdefghabcd", "sunlightsunlightsun", "abcdeabcdeabcdeab"),
            "goal": 0.99,
        }
    )
