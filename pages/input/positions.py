"""The schemes of positions, any two of the six side by side; permutations, longer texts."""

import streamlit as st

from explorer.analysis.position_schemes import CODE, SCHEMES
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.views.input.changed_positions import draw_length_extrapolation, draw_permutation
from explorer.views.input.doubled_exponent import draw_doubled_exponent
from explorer.views.input.scheme import choose_other, draw_scheme, scheme_caption
from explorer.views.shared import widgets

VIEWS = {
    "Scheme": draw_scheme,
    "Permutation": draw_permutation,
    "Length extrapolation": draw_length_extrapolation,
    "Doubled exponent": draw_doubled_exponent,
}
VIEW_WIDTH = 230

context = page_context()
widgets.opening(
    "Positions",
    "Attention alone ignores order; position encodings tell the model where each token is.",
)
own = context.opened.config.positions
by_label = {SCHEMES[name]: name for name in [own, *(name for name in SCHEMES if name != own)]}
row = st.container(horizontal=True)
with row:
    scheme = by_label[one_of("scheme", tuple(by_label), SCHEMES[own])]
    view = one_of("lab", tuple(VIEWS), as_list=True, width=VIEW_WIDTH)
schemes = [scheme]
if view == "Scheme":
    adjust = row.popover("Adjust", icon=":material/tune:")
    with adjust:
        schemes += choose_other(scheme, row)
    lines = draw_scheme(context, *schemes, adjust=adjust)
else:
    lines = VIEWS[view](context, scheme)
    st.caption(scheme_caption(context, scheme))
widgets.closing(context, *(CODE[name] for name in schemes), script=lines)
