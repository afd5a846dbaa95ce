"""The first stage of a forward pass: from the characters to the tokens, and to their IDs."""

import streamlit as st

from explorer.analysis.forward_pass.pass_values import PassValues
from explorer.analysis.forward_pass.stage import Stage
from explorer.analysis.forward_pass.stage_cut import tokens_of, writes
from explorer.components import chips
from explorer.text.labels import cut, readable
from explorer.text.token_labels import texts
from explorer.views.shared.pinned_pair import STAGE_CHOICES

MOST_HEIGHT, ROW = 600, 35
LONGEST, TOKEN_ID = 24, "token ID"


def draw_tokenization(values: PassValues, stage: Stage, row: int) -> None:
    """The tokens to choose one from, and a table with the ID of each."""
    tokens, forward = tokens_of(values, stage.stack), values.forward
    chips(
        tokens,
        key="stage_tokens",
        highlight=row,
        on_pick=lambda place: STAGE_CHOICES.put(f"{stage.stack}_token", str(place)),
    )
    names = [cut(name, LONGEST) for name in texts(tokens)]
    ids = [f"{token.id:,}" for token in tokens]
    if writes(values, stage):
        written = [cut(name, LONGEST) for name in texts(forward.written)]
        columns = {"reads": names, TOKEN_ID: ids, "writes": written}
    else:
        spans = [forward.typed[token.start : token.end] for token in forward.placed]
        characters = [cut(readable(each), LONGEST) or "none: added" for each in spans]
        columns = {"characters": characters, "token": names, TOKEN_ID: ids}
    right = st.column_config.TextColumn(alignment="right")
    st.dataframe(
        {"position": [str(place) for place in range(len(tokens))], **columns},
        hide_index=True,
        width=560,
        height=min(MOST_HEIGHT, 38 + ROW * len(tokens)),
        column_config={"position": right, TOKEN_ID: right},
    )
