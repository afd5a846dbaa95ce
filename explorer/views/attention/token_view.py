"""The Tokens view of a head: each token in two halves, whom it looks at and who looks at it."""

from __future__ import annotations

from explorer.analysis.attention_filters import Look
from explorer.app.context import page_context
from explorer.components.inspect import inspect
from explorer.inference.forward_pass import ForwardPass
from explorer.views.attention.large_head import picture
from explorer.views.shared import pinned, widgets

OWN_SCALE = (
    "Each half of a token is coloured to its own largest value here; how colours are scaled is "
    "chosen for the other views."
)


def two_way(forward: ForwardPass, look: Look, *, key: str = "attention_tokens") -> None:
    """The tokens of the chosen head, the way it was asked for.

    Cross-attention has two strips of them, and so has one sentence that looks at another.
    """
    at = page_context().choice
    words, made = forward.part(at.part).words, picture(forward, look)
    places = made.row_groups, made.groups
    holds = pinned.now(forward)
    is_one_strip = at.part.endswith("self_attn") and made.rows == made.columns
    inspect(
        made.values,
        made.rows,
        made.columns,
        key=key,
        allowed=made.allowed,
        same=is_one_strip,
        row_name=words.row,
        column_name=words.column,
        unit=made.unit,
        height=widgets.MATRIX_HEIGHT,
        held=pinned.token(holds, *places, one_strip=is_one_strip),
        on_hold=lambda token: pinned.hold_token(holds, token, *places),
    )
    widgets.notes(made.notes)
    if look.scaling != Look().scaling or look.log:
        widgets.notes([OWN_SCALE])
    pinned.way_on(holds)
