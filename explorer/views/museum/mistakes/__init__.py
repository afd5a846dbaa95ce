"""Mistakes that circulate in tutorials, each made in a copy of a model that shares its weights.

A mistake is one overridden method of a class of the core, or another value of an attribute.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from explorer.views.museum.mistakes import (
    attention_mistakes,
    output_mistakes,
    position_mistakes,
    stack_mistakes,
)
from models.config import TransformerConfig
from models.model import Transformer


@dataclass(frozen=True)
class Mistake:
    """How it is made in a model; `misfit` says why a config cannot have it, or None."""

    make: Callable[[Transformer], Transformer]
    misfit: Callable[[TransformerConfig], str | None]


MISTAKES: dict[str, Mistake] = {
    "doubled-exponent": Mistake(
        position_mistakes.doubled_exponent, position_mistakes.needs_sinusoids
    ),
    "batch-softmax": Mistake(output_mistakes.softmax_over_the_batch, output_mistakes.needs_words),
    "lost-target": Mistake(stack_mistakes.lost_target, stack_mistakes.needs_two_stacks),
    "never-appends": Mistake(stack_mistakes.never_appends, stack_mistakes.needs_two_stacks),
    "shared-projection": Mistake(
        attention_mistakes.one_projection, attention_mistakes.needs_even_slices
    ),
    "fixed-heads": Mistake(
        attention_mistakes.eight_heads, attention_mistakes.needs_other_than_eight
    ),
    "no-padding-mask": Mistake(stack_mistakes.no_padding_mask, stack_mistakes.needs_padding),
    "softmax-twice": Mistake(output_mistakes.softmax_inside, output_mistakes.needs_logits),
    "filled-row": Mistake(attention_mistakes.filled, attention_mistakes.needs_padded_rows),
    "dropped-weights": Mistake(attention_mistakes.unmasked, attention_mistakes.needs_plain_scores),
    "norm-order": Mistake(stack_mistakes.other_norm_order, stack_mistakes.needs_one_norm),
    "wrong-scale": Mistake(
        attention_mistakes.scaled_by_the_model, attention_mistakes.needs_several_heads
    ),
}
MISTAKES |= {
    f"filled-row {name}": Mistake(
        partial(attention_mistakes.filled, fill=fill), attention_mistakes.needs_padded_rows
    )
    for name, fill in attention_mistakes.FILLS.items()
}
"""By name. Two of the documents' fourteen are about a printed number and about labels."""
