"""Heads ranked by a metric, compared with each other, and combined over the layers."""

import streamlit as st

from explorer.analysis import head_metrics, head_programs, head_similarity, rollout
from explorer.app import controls
from explorer.app.context import page_context
from explorer.inference import token_programs
from explorer.views.attention import head_finder, programs_view, rollout_and_flow
from explorer.views.shared import widgets

SIDES = {
    "Finder": head_finder.draw_finder,
    "Similarity": head_finder.draw_similarity,
    "Rollout": rollout_and_flow.draw_rollout,
    "Flow": rollout_and_flow.draw_flow,
    "Programs": programs_view.draw_programs,
}
CODE = {
    "Finder": (head_metrics.metrics_of_heads, head_metrics.pattern_cells),
    "Similarity": (head_similarity.js_divergence,),
    "Rollout": (rollout.half_residual, rollout.rollout),
    "Flow": (rollout.half_residual, rollout.flow_to),
    "Programs": (head_programs.loss_with, token_programs.program_map),
}

widgets.opening(
    "Heads",
    "Rank the heads on your sentence, compare them, and follow attention through the layers.",
)
context = page_context()
row = st.container(horizontal=True, vertical_alignment="center")
with row:
    side = controls.one_of("side", list(SIDES), label_visibility="collapsed")
lines = SIDES[side](context, row)
widgets.notes(context.forward.notes)
widgets.closing(context, *CODE[side], script=lines)
