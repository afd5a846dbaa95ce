"""The trap of induction: with one period for all rows, a single layer seems to do the same.

It attends to a constant offset. On a text that repeats after another number of letters it is
lost, which `explorer.tasks.induction` never lets happen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float

from explorer.tasks.induction import LONGEST, Induction, Rows, build_induction
from explorer.text import Token

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
