"""The Tokens view of a head: each token in two halves, whom it looks at and who looks at it."""

from __future__ import annotations

from explorer import session, widgets
from explorer.analysis.looks import Look, Shown, shown
from explorer.components.inspect import inspect
from explorer.kept import kept
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
    words, made = reading.part(at.part).words, _picture(reading, look)
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


def _picture(reading: Reading, look: Look) -> Shown:
    """Of one head made each time, of all heads of a layer kept: that one takes a while."""
    at = session.choice()

    def make() -> Shown:
        return shown(reading, at.part, at.layer, at.head, look)

    if look.of == "head":
        return make()
    key = ("look", at.text, at.pair, at.part, at.layer, look)
    return kept(session.opened(), key, make, lambda made: made.values.nbytes)
