"""One example of a batch: the tokens that the model reads, and the targets that it predicts."""

from collections.abc import Sequence
from math import isfinite

import streamlit as st

from explorer.components.chips import chips
from explorer.tasks.data_summary import Example
from explorer.text.number_format import three
from explorer.text.visible_text import literal

TOKENS_SHOWN = 128
"""The most tokens of an example that are shown; a caption says how many it has."""
NO_VALUE = -1.0
"""A value that `chips` draws without a shade."""
BATCH_EXPLAINED = (
    "The second row is the target at each position; “–” is ignored in the loss. Muted tokens are "
    "special or padding."
)


def draw_example(
    example: Example, name: str, key: str, losses: Sequence[float] | None = None
) -> None:
    """The tokens of each stack as chips under this name, the last stack with the labels below.

    With `losses`, in nats, the shade of a label is its loss; the title has the loss of a class.
    """
    for stack, tokens in enumerate(example.inputs):
        is_last = stack == len(example.inputs) - 1
        below = example.targets[:TOKENS_SHOWN] if is_last and example.targets else None
        title = f"{name[:1].upper()}{name[1:]}"
        if len(example.inputs) > 1:
            title += ", decoder" if stack else ", encoder"
        if example.label:
            title += f" · class {literal(example.label)}"
            title += f" · {three(losses[0])} nats" if losses else ""
        st.caption(title)
        values = None
        if below and losses:
            values = [loss if isfinite(loss) else NO_VALUE for loss in losses[:TOKENS_SHOWN]]
        chips(tokens[:TOKENS_SHOWN], key=f"{key}_{stack}", below=below, values=values, unit="nats")
        if len(tokens) > TOKENS_SHOWN:
            st.caption(f"The first {TOKENS_SHOWN} of {len(tokens)} tokens.")
