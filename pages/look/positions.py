"""How a model is told where a token stands: five schemes, at the sizes of the chosen model."""

import streamlit as st

from explorer import session, widgets
from explorer.figures.curves import by_offset, slopes, waves
from explorer.positions import CODE, EXPLANATIONS, NO_TABLE, SCHEMES, scheme

SHOWN = 48
HEIGHT = 260

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

left, right = widgets.side_by_side(1, 1)
if shown.table is not None:
    with left:
        widgets.places(shown.table, "dimension", shown.title, "value", key="positions_table")
if chosen != "none":
    with right if shown.table is not None else left:
        widgets.places(
            shown.products, "position", "Position against position", shown.unit, key="products"
        )

if shown.slopes:
    with right:
        st.markdown("**What each head takes off**")
        st.vega_lite_chart(slopes(shown.slopes, count), height=HEIGHT, key="slopes")
elif shown.pairs:
    left, right = widgets.side_by_side(1, 1)
    with left:
        pair = st.slider("Pair of dimensions", 0, len(shown.pairs) - 1, 0, key="pair")
        st.vega_lite_chart(waves(shown.wave(pair)), height=HEIGHT, key="waves")
        if shown.wavelengths:
            st.caption(f"One turn takes {shown.wavelengths[pair]:,.3g} positions.")
    with right:
        st.markdown("**The product by the distance of two positions**")
        st.vega_lite_chart(by_offset(shown.against_offset(), "product"), height=HEIGHT)
widgets.code(CODE[chosen])
