"""Heads ranked by a metric, compared with each other, and combined over the layers."""

import streamlit as st

from explorer.analysis import (
    attention_sinks,
    head_metrics,
    head_programs,
    head_similarity,
    rollout,
    token_attribution,
    weight_distribution,
)
from explorer.app import controls
from explorer.app.context import page_context
from explorer.inference import token_programs
from explorer.views.attention import (
    head_finder,
    programs_view,
    rollout_and_flow,
    sinks_view,
    token_attribution_view,
    weight_distribution_view,
)
from explorer.views.shared import widgets

SIDES = {
    "Finder": head_finder.draw_finder,
    "Similarity": head_finder.draw_similarity,
    "Programs": programs_view.draw_programs,
    "Sinks": sinks_view.draw_sinks,
    "Map of heads": head_finder.draw_scatter,
    "Distribution": weight_distribution_view.draw_distribution,
    "Rollout": rollout_and_flow.draw_rollout,
    "Flow": rollout_and_flow.draw_flow,
    "Attribution": token_attribution_view.draw_attribution,
}
ACROSS = "in cross-attention the keys are another text's"
ONE_STACK = "rollout and flow follow the residual stream of one stack"
ONLY = {
    "Programs": (1, "programs describe the stack that reads your text"),
    "Sinks": (2, ACROSS),
    "Rollout": (2, ONE_STACK),
    "Flow": (2, ONE_STACK),
}
"""By view, of how many of the first parts of a model it is, and why."""
CODE = {
    "Finder": (head_metrics.metrics_of_heads, head_metrics.pattern_cells),
    "Similarity": (head_similarity.js_divergence,),
    "Map of heads": (head_metrics.metrics_of_heads,),
    "Distribution": (weight_distribution.weight_deciles,),
    "Sinks": (attention_sinks.sinks_by_layer, attention_sinks.sink_experiment),
    "Rollout": (rollout.half_residual, rollout.rollout),
    "Flow": (rollout.half_residual, rollout.flow_to),
    "Attribution": (
        token_attribution.gradient_times_input,
        token_attribution.integrated_gradients,
        token_attribution.deletion_curves,
    ),
    "Programs": (head_programs.loss_with, token_programs.program_map),
}

widgets.opening(
    "Heads",
    "Rank the heads on your sentence, compare them, and follow attention through the layers.",
)
context = page_context()
row = st.container(horizontal=True, vertical_alignment="center")
with row:
    side = controls.one_of(
        "side", list(SIDES), as_list=True, label_visibility="collapsed", width=170
    )
if side in ONLY:
    count, why = ONLY[side]
    context = widgets.shown_part(context, context.forward.parts[:count], why)
lines = SIDES[side](context, row)
widgets.notes(context.forward.notes)
widgets.closing(context, *CODE[side], script=lines)
