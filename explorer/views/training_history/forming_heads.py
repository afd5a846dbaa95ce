"""When the heads of a run form: every head, what it does in the end, and since when."""

import streamlit as st

from explorer.analysis.head_formation import NOTICEABLE, SHARE, formations
from explorer.app.context import PageContext
from explorer.text.number_format import three
from explorer.views.training_history.moments import History

MOST_HEADS_NAMED = 3


def draw_formations(context: PageContext, history: History) -> None:
    """Every head that does something in the end, what that is, and when it formed."""
    found = sorted(
        formations(history.scores(context.choice.part)),
        key=lambda each: (each.step is None, each.step or 0, each.layer, each.head),
    )
    if not found:
        st.text(f"No head of this attention has a score of {NOTICEABLE} or more in the end.")
        return
    first = [each for each in found if each.step is not None and each.step == found[0].step]
    if first:
        names = " and ".join(
            f"layer {each.layer}, head {each.head}" for each in first[:MOST_HEADS_NAMED]
        )
        more = f" and {len(first) - MOST_HEADS_NAMED} more" if len(first) > MOST_HEADS_NAMED else ""
        st.text(f"First to form, by step {first[0].step:,}: {names}{more}.")
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
        "Each head is judged by its highest score after training, if that is at least "
        f"{NOTICEABLE}. It forms at the first snapshot from which this score stays at or above "
        f"{SHARE:.0%} of its final value. No step is given if it does so from the start, or at the "
        "last snapshot only."
    )
