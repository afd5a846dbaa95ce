"""Heads ranked by a metric, compared with each other, and combined over the layers."""

import streamlit as st

from explorer.analysis import (
    attention_sinks,
    head_metrics,
    head_similarity,
    rollout,
    sink_experiments,
)
from explorer.app import controls
from explorer.app.context import page_context
from explorer.views.attention import head_finder, rollout_and_flow, sinks_view
from explorer.views.shared import widgets

SIDES = {
    "Finder": head_finder.draw_finder,
    "Similarity": head_finder.draw_similarity,
    "Sinks": sinks_view.draw_sinks,
    "Rollout": rollout_and_flow.draw_rollout,
    "Flow": rollout_and_flow.draw_flow,
}
CODE = {
    "Finder": (head_metrics.metrics_of_heads, head_metrics.pattern_cells),
    "Similarity": (head_similarity.js_divergence,),
    "Sinks": (attention_sinks.sinks_by_layer, sink_experiments.CutKey),
    "Rollout": (rollout.half_residual, rollout.rollout),
    "Flow": (rollout.half_residual, rollout.flow_to),
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
