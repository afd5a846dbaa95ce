"""One example of a batch as the model reads it, with what it is to predict."""

from collections.abc import Sequence
from math import isfinite

import streamlit as st

from explorer.components import chips
from explorer.tasks.data_summary import Example
from explorer.text.number_format import three
from explorer.text.visible_text import literal

TOKENS_SHOWN = 128
"""Of one example; it says how many it has."""
NO_VALUE = -1.0
"""What `chips` draw without a shade."""
BATCH_EXPLAINED = (
    "The second row is the target at each position; “–” is ignored in the loss. Muted tokens are "
    "special or padding."
)


def draw_example(
    example: Example, name: str, key: str, losses: Sequence[float] | None = None
) -> None:
    """Its stacks as chips under this name; the last one has the labels below.

    With `losses`, in nats, each label has its own as a shade, and a class has it in words.
    """
    for stack, tokens in enumerate(example.inputs):
        is_last = stack == len(example.inputs) - 1
        below = example.targets[:TOKENS_SHOWN] if is_last and example.targets else None
        title = name
        if len(example.inputs) > 1:
            title += ", encoder" if stack == 0 else ", decoder"
        title = f"{title[:1].upper()}{title[1:]}"
        if example.label:
            title += f" · class {literal(example.label)}"
            title += f" · {three(losses[0])} nats" if losses else ""
        st.caption(title)
        values = None
        if below and losses:
            values = [each if isfinite(each) else NO_VALUE for each in losses[:TOKENS_SHOWN]]
        chips(tokens[:TOKENS_SHOWN], key=f"{key}_{stack}", below=below, values=values, unit="nats")
        if len(tokens) > TOKENS_SHOWN:
            st.caption(f"The first {TOKENS_SHOWN} of {len(tokens)} tokens.")
