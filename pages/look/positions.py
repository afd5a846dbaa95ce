"""How a model is told where a token stands: six schemes, at the sizes of the chosen model."""

import streamlit as st

from explorer import session, widgets
from explorer.positions import CODE, EXPLANATIONS, NO_TABLE, SCHEMES, scheme

SHOWN = 48

widgets.opening(
    "Positions",
    "Attention alone does not see the order of the words; this is what tells the model "
    "where each token stands.",
)
opened = session.opened()
own = opened.config.positions
chosen = st.segmented_control(
    "Scheme",
    list(SCHEMES),
    default=own,
    format_func=SCHEMES.__getitem__,
    key="scheme",
    required=True,
    bind="query-params",
)
uses = "this scheme" if chosen == own else f"another one: {SCHEMES[own]}"
st.caption(f"{EXPLANATIONS[chosen]} The chosen model uses {uses}.")

count = min(SHOWN, opened.config.max_len) if chosen == "learned" else SHOWN
shown = scheme(chosen, opened.model, count, session.choice().head)
if shown is None:
    widgets.say(NO_TABLE)
    st.stop()
if chosen != "none":
    st.caption(f"Shown are the first {count} positions.")
widgets.positions(shown)
widgets.code(CODE[chosen])
