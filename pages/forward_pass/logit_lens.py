"""The model's prediction after each layer, and direct logit attribution."""

import streamlit as st

from explorer.analysis import logit_attribution, logit_lens
from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.views.forward_pass.lens_and_attribution import (
    draw_logit_attribution,
    draw_passes,
    edited_lens_code,
    lens_code,
    lens_of,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import script
from explorer.views.shared.edit_history import AFTER, BEFORE, BOTH, draw_active
from explorer.views.shared.widgets import choose_output_position
from models.frozen_scales import freeze_norm

widgets.opening(
    "Logit lens",
    "Each cell is the token that the model would predict if it stopped after that row's layer.",
)
context = page_context()
opened, forward = context.opened, context.forward
lines = None
if opened.config.head == "none":
    say("This model has no output head, so its residual streams give no prediction.")
else:
    edited, which = draw_active(context, (BOTH, BEFORE, AFTER))
    position = choose_output_position(context)
    draw_passes(context, position, edited, which)
    if edited.applied:
        st.caption("Direct logit attribution is that of the pass without the interventions.")
    option = draw_logit_attribution(context, position, lens_of(opened, forward, position)[-1])
    lines = script(lens_code, forward, position, option)
    if which != BEFORE:
        lines += script(edited_lens_code, edited, position)
widgets.notes(forward.notes)
widgets.closing(
    context,
    logit_lens.lens_logits,
    logit_lens.residual_streams,
    logit_attribution.contributions,
    freeze_norm,
    script=lines,
)
