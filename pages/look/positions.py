"""How a model is told where a token stands: five schemes, at the sizes of the chosen model."""

import streamlit as st

from explorer import session, widgets
from explorer.components import matrix
from explorer.figures.curves import by_offset, slopes, waves
from explorer.positions import EXPLANATIONS, SCHEMES, scheme
from models import positional

SHOWN = 48
CODE = {
    "sinusoidal": (positional.sinusoids,),
    "learned": (positional.LearnedPositions,),
    "rotary": (positional.RotaryPositions,),
    "alibi": (positional.AlibiPositions,),
    "none": (positional.Positions,),
}

widgets.opening(
    "Positions",
    "Attention alone does not see the order of the words; this is what tells the model "
    "where each token stands.",
)
opened, head = session.opened(), session.choice().head
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
if chosen == own:
    st.caption(f"The chosen model uses this scheme. {EXPLANATIONS[chosen]}")
else:
    st.caption(f"The chosen model uses {SCHEMES[own].lower()} positions. {EXPLANATIONS[chosen]}")

count = min(SHOWN, opened.config.max_len) if chosen == "learned" else SHOWN
shown = scheme(chosen, opened.model, count, head)
if shown is None:
    widgets.say(
        "This model has no learned positions to show: choose a model that was trained "
        "with them, or another scheme."
    )
    st.stop()
places = [str(place) for place in range(count)]

left, right = st.columns(2, gap="large")
with left:
    st.markdown(
        "**What a position adds**" if chosen != "rotary" else "**A vector of ones, turned**"
    )
    if shown.table is None:
        widgets.say("Nothing is added to the tokens.")
    else:
        dimensions = [str(dimension) for dimension in range(shown.table.shape[1])]
        matrix(
            shown.table,
            places,
            dimensions,
            key="positions_table",
            scale="diverging",
            row_name="position",
            column_name="dimension",
            sentence="Position {row}, dimension {column}: {value}",
            unit="value",
            height=430,
        )
with right:
    st.markdown("**Position against position**")
    matrix(
        shown.products,
        places,
        places,
        key="positions_products",
        scale="diverging",
        row_name="position",
        column_name="position",
        sentence="Position {row} and position {column}: {value}",
        unit="bias" if chosen == "alibi" else "product",
        height=430,
    )

left, right = st.columns(2, gap="large")
with left:
    if shown.pairs:
        pair = st.slider("Pair of dimensions", 0, len(shown.pairs) - 1, 0, key="pair")
        rows = [
            {
                "position": place,
                "value": float(shown.table[place, d]),
                "dimension": f"dimension {d}",
            }
            for d in shown.pairs[pair]
            for place in range(count)
        ]
        st.vega_lite_chart(waves(rows), height=240, key="positions_waves")
        if shown.wavelengths:
            st.caption(f"One turn takes {shown.wavelengths[pair]:,.3g} positions.")
with right:
    if shown.slopes:
        st.vega_lite_chart(slopes(shown.slopes, count), height=240, key="positions_slopes")
    elif chosen != "none":
        st.vega_lite_chart(by_offset(shown.against_offset(), "product"), height=240)
widgets.code(*CODE[chosen])
