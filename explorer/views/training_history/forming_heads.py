"""When the heads of a run form: every head, what it does in the end, and since when."""

from __future__ import annotations

import streamlit as st

from explorer.analysis.head_formation import NOTICEABLE, SHARE, formations
from explorer.app.context import PageContext
from explorer.text.number_format import three
from explorer.views.training_history.moments import History


def draw_formations(context: PageContext, history: History) -> None:
    """Every head that does something in the end, what that is, and when it formed."""
    found = sorted(
        formations(history.scores(context.choice.part)),
        key=lambda each: (each.step is None, each.step or 0, each.layer, each.head),
    )
    if not found:
        st.text(f"No head of this attention has a score of {NOTICEABLE} or more in the end.")
        return
    first = found[0]
    if first.step is not None:
        st.text(
            f"Layer {first.layer}, head {first.head} forms first, at step {first.step:,}: its "
            f"score, {first.score}, is {three(first.final)} in the end."
        )
    st.dataframe(
        {
            "head": [f"layer {each.layer}, head {each.head}" for each in found],
            "highest score": [each.score for each in found],
            "in the end": [three(each.final) for each in found],
            "forms at step": [each.step for each in found],
        },
        hide_index=True,
        width="stretch",
        column_config={
            "in the end": st.column_config.TextColumn(alignment="right"),
            "forms at step": st.column_config.NumberColumn(format="localized"),
        },
    )
    st.caption(
        f"By the score that is highest after the last step, where it is at least {NOTICEABLE}. A "
        f"head forms at the first snapshot from which on this score stays at {SHARE:.0%} of its "
        "final value or above; no step is given where that is the last one."
    )
