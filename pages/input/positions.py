"""The schemes of positions, any two of the six side by side; permutations, longer texts."""

from dataclasses import replace

import streamlit as st

from explorer.analysis.position_schemes import CODE, SCHEMES
from explorer.app.context import page_context
from explorer.app.controls import one_of, option_of
from explorer.catalog import ModelError
from explorer.views.input.changed_positions import draw_length_extrapolation, draw_permutation
from explorer.views.input.doubled_exponent import draw_doubled_exponent
from explorer.views.input.scheme import borrowed_from, choose_other, draw_scheme, scheme_caption
from explorer.views.shared import widgets
from explorer.views.shared.widgets import ViewSpec

OF_SCHEME = {
    "sinusoidal": "Each row is added to the token at that position: near rows look alike.",
    "learned": "Each position's trained row is added to its token.",
    "rotary": "Each position turns queries and keys further, so that a score depends on distance.",
    "relative": "Each score gets a number for its distance: same colour, same bucket, same number.",
    "alibi": "Every score is lowered by the distance (a bias): the stronger the colour, the more.",
    "none": "Nothing says where a token is; without a causal mask, order changes nothing.",
}
VIEWS = {
    "Scheme": ViewSpec("", draw_scheme),
    "Permutation": ViewSpec(
        "The same tokens in another order: if the answer changes, the model knows positions.",
        draw_permutation,
    ),
    "Length extrapolation": ViewSpec(
        "What happens beyond the dashed line, where the text is longer than the model's maximum.",
        draw_length_extrapolation,
    ),
    "Doubled exponent": ViewSpec(
        "Above: correct. Below: with a common mistake, far more columns hardly change.",
        draw_doubled_exponent,
    ),
}
VIEW_WIDTH = 230

context = page_context()
if isinstance(context.model, ModelError):  # the page ends below with what is wrong
    widgets.opening("Positions", OF_SCHEME["none"])
own = context.opened.config.positions
by_label = {SCHEMES[name]: name for name in [own, *(name for name in SCHEMES if name != own)]}
drawn = OF_SCHEME[chosen := by_label[option_of("scheme", tuple(by_label))]]
if chosen == "learned":
    drawn += borrowed_from(context)
widgets.opening_of_view(
    "Positions", "lab", VIEWS | {"Scheme": replace(VIEWS["Scheme"], sentence=drawn)}
)
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
    if schemes == ["none"]:  # it has no table: what it cannot tell is shown
        lines = draw_permutation(context, scheme)
else:
    lines = VIEWS[view].draw(context, scheme)
    st.caption(scheme_caption(context, scheme))
widgets.closing(context, *(CODE[name] for name in schemes), script=lines)
