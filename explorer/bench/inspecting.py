"""The Tokens view of a head: each token in two halves, whom it looks at and who looks at it."""

from __future__ import annotations

from explorer import session, widgets
from explorer.analysis.looks import Look
from explorer.bench.large import picture
from explorer.components.inspect import inspect
from explorer.reading import Reading

OWN_SCALE = (
    "Each half of a token is coloured to its own largest value here; how colours are scaled is "
    "chosen for the other views."
)


def two_way(reading: Reading, look: Look, *, key: str = "attention_tokens") -> None:
    """The tokens of the chosen head, the way it was asked for.

    Cross-attention has two strips of them, and so has one sentence that looks at another.
    """
    at = session.choice()
    words, made = reading.part(at.part).words, picture(reading, look)
    inspect(
        made.values,
        made.rows,
        made.columns,
        key=key,
        allowed=made.allowed,
        same=at.part.endswith("self_attn") and made.rows == made.columns,
        row_name=words.row,
        column_name=words.column,
        unit=made.unit,
        height=widgets.MATRIX_HEIGHT,
    )
    widgets.notes(made.notes)
    if look.scaling != Look().scaling or look.log:
        widgets.notes([OWN_SCALE])
