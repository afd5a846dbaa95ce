"""The parameter ledger: every number of the model once, by the part it belongs to."""

from __future__ import annotations

import streamlit as st

from explorer import describe
from explorer.library import Opened


def show(opened: Opened) -> None:
    """A line for each part; the counts sum to the total."""
    lines = describe.ledger(opened.model)
    total = sum(line.count for line in lines)
    st.markdown(f"**{total:,} parameters** · every part once, the total last")
    st.dataframe(
        {
            "part": [line.part for line in lines] + ["total"],
            "tensors": [line.formula for line in lines] + [""],
            "parameters": [line.count for line in lines] + [total],
            "share": [100 * line.count / total for line in lines] + [100.0],
        },
        hide_index=True,
        height=min(600, 38 + 35 * (len(lines) + 1)),
        column_config={
            "parameters": st.column_config.NumberColumn(format="localized"),
            "share": st.column_config.NumberColumn(format="%.3g%%"),
        },
    )
