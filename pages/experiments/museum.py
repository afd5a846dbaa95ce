"""The tutorials' mistakes as exhibits, a quiz to find one, and the systems they come from."""

import streamlit as st

from explorer.app import address
from explorer.app.context import page_context
from explorer.app.controls import one_of, option_of
from explorer.app.session import session
from explorer.views.museum import mistakes
from explorer.views.museum.document_systems import draw_systems
from explorer.views.museum.exhibit_view import draw_exhibit
from explorer.views.museum.exhibits import FOUR_TEXTS
from explorer.views.museum.find_mistake import draw_find_mistake
from explorer.views.shared import widgets
from explorer.views.shared.widgets import ViewSpec

VIEWS = {
    "Find the mistake": ViewSpec(
        "Left: a copy of the model with a hidden mistake. Right: as it should be. Which is it?",
        draw_find_mistake,
    ),
    "Exhibits": ViewSpec(
        "Left: with a tutorial's mistake. Right: as it should be. Choose one of fourteen mistakes.",
        draw_exhibit,
    ),
    "Systems": ViewSpec(
        "How large the model of each tutorial is: a longer bar, more parameters (trained numbers).",
        draw_systems,
    ),
}

# A link to an exhibit opens it. With a default: Streamlit forgets what is set before it draws.
is_link = session().has_arrived and address.is_named("exhibit") and not address.is_named("room")
opened = "Exhibits" if is_link else option_of("room", list(VIEWS))
widgets.opening("Museum", VIEWS[opened].sentence)
context = page_context()
row = st.container(horizontal=True, vertical_alignment="center", key="museum_row")
with row:
    view = one_of("room", tuple(VIEWS), "Exhibits" * is_link, label_visibility="collapsed")
if is_link:
    session().defaults.pop("room")  # it stays, though the default is another from now on
lines = VIEWS[view].draw(context, row)
st.caption(FOUR_TEXTS)
widgets.closing(
    context,
    mistakes.doubled_sinusoids,
    mistakes.softmax_output,
    mistakes.LosesTarget,
    mistakes.NeverAppends,
    mistakes.OneForAllHeads,
    mistakes.filled_weights,
    script=lines,
    label="Code of the mistakes",
)
