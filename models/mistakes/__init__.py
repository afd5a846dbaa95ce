"""Mistakes that circulate in tutorials, each as a leaf that can stand in a copy of a model.

The core knows none of them. A copy shares its weights with the model it was made of.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from models.config import TransformerConfig
from models.mistakes import attention, outputs, positions, stacks
from models.transformer import Transformer


@dataclass(frozen=True)
class Mistake:
    """How a model gets it; `misfit` says in a sentence which models cannot have it, or None."""

    make: Callable[[Transformer], Transformer]
    misfit: Callable[[TransformerConfig], str | None]


MISTAKES: dict[str, Mistake] = {
    "doubled-exponent": Mistake(positions.doubled_exponent, positions.needs_sinusoids),
    "batch-softmax": Mistake(outputs.softmax_over_the_batch, outputs.needs_words),
    "lost-target": Mistake(stacks.lost_target, stacks.needs_two_stacks),
    "never-appends": Mistake(stacks.never_appends, stacks.needs_two_stacks),
    "shared-projection": Mistake(attention.one_projection, attention.needs_even_slices),
    "fixed-heads": Mistake(attention.eight_heads, attention.needs_other_than_eight),
    "no-padding-mask": Mistake(stacks.no_padding_mask, stacks.needs_padding),
    "softmax-twice": Mistake(outputs.softmax_inside, outputs.needs_logits),
    "filled-row": Mistake(attention.filled, attention.needs_padding),
    "dropped-weights": Mistake(attention.unmasked, attention.needs_plain_scores),
    "norm-order": Mistake(stacks.other_norm_order, stacks.needs_one_norm),
    "wrong-scale": Mistake(attention.scaled_by_the_model, attention.needs_several_heads),
}
MISTAKES |= {
    f"filled-row {name}": Mistake(partial(attention.filled, fill=fill), attention.needs_padding)
    for name, fill in attention.FILLS.items()
}
"""By name. Two of the documents' fourteen are about a printed number and about labels."""
