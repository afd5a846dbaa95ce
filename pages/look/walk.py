"""The whole pass: every stage of the chosen model in order, with its formula and its values."""

import streamlit as st

from explorer import session, widgets
from explorer.analysis.walk import stages_of
from explorer.analysis.walk_values import recorded
from explorer.bench import pasting, walk
from explorer.turns import turn

widgets.opening(
    "The whole pass",
    "From the tokens to the answer, one stage at a time: Space and the arrow keys move on.",
)


@st.fragment
@turn()
def here() -> None:
    """All that a step draws anew."""
    reading = session.reading_of_text()
    walk.show(session.opened(), reading)
    widgets.notes(reading.notes)
    widgets.code(stages_of, recorded, pasted=lambda: pasting.stage(reading))


here()
