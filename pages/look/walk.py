"""The whole pass: every stage of the chosen model in order, with its formula and its values."""

import streamlit as st

from explorer import session, widgets
from explorer.analysis import walk as stages
from explorer.analysis import walk_values
from explorer.bench import pasting, walk

widgets.opening(
    "The whole pass",
    "From the tokens to the answer, one stage at a time: Space and the arrow keys move on.",
)


@st.fragment
def here() -> None:
    """All that a step draws anew."""
    reading = session.reading_of_text()
    walk.show(session.opened(), reading)
    widgets.notes(reading.notes)
    widgets.code(stages.stages, walk_values.recorded, pasted=lambda: pasting.stage(reading))


here()
