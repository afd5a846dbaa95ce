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
from explorer.views.shared.widgets import ViewSpec

SIDES = {
    "Finder": ViewSpec(
        "Every head on your sentence, ranked by the chosen metric.",
        head_finder.draw_finder,
        (head_metrics.metrics_of_heads, head_metrics.pattern_cells),
    ),
    "Attribution": ViewSpec(
        "Which tokens an answer depends on, by five methods: the stronger a cell, the more.",
        token_attribution_view.draw_attribution,
        (
            token_attribution.gradient_times_input,
            token_attribution.integrated_gradients,
            token_attribution.deletion_curves,
        ),
    ),
    "Similarity": ViewSpec(
        "How alike two heads read your sentence: the stronger a cell, the more alike.",
        head_finder.draw_similarity,
        (head_similarity.js_divergence,),
    ),
    "Map of heads": ViewSpec(
        "Each dot is a head: heads that behave alike lie close together.",
        head_finder.draw_scatter,
        (head_metrics.metrics_of_heads,),
    ),
    "Distribution": ViewSpec(
        "A head's weights, sorted, in ten equal groups: a bar is a group's share of all weight.",
        weight_distribution_view.draw_distribution,
        (weight_distribution.weight_deciles,),
    ),
    "Sinks": ViewSpec(
        "A cell is a head: the share of its attention on the first token.",
        sinks_view.draw_sinks,
        (attention_sinks.sinks_by_layer, attention_sinks.sink_experiment),
    ),
    "Rollout": ViewSpec(
        "Attention followed through all layers: how much each token takes from each input token.",
        rollout_and_flow.draw_rollout,
        (rollout.half_residual, rollout.rollout),
    ),
    "Flow": ViewSpec(
        "How much of each input token can reach the chosen one through all layers.",
        rollout_and_flow.draw_flow,
        (rollout.half_residual, rollout.flow_to),
    ),
    "Programs": ViewSpec(
        "Which short rule, such as “read the previous token”, predicts what each head attends to.",
        programs_view.draw_programs,
        (head_programs.loss_with, token_programs.program_map),
    ),
}
ACROSS = "in cross-attention the keys are another text's"
ONE_STACK = "rollout and flow follow one stack"
ONLY = {
    "Programs": (1, "programs describe the stack that reads your text"),
    "Sinks": (2, ACROSS),
    "Rollout": (2, ONE_STACK),
    "Flow": (2, ONE_STACK),
}
"""By view, of how many of the first parts of a model it is, and why."""

widgets.opening_of_view("All heads", "side", SIDES)
context = page_context()
row = st.container(horizontal=True, vertical_alignment="center")
with row:
    side = controls.one_of(
        "side", list(SIDES), as_list=True, label_visibility="collapsed", width=170
    )
if side in ONLY:
    count, why = ONLY[side]
    context = widgets.shown_part(context, context.forward.parts[:count], why)
lines = SIDES[side].draw(context, row)
widgets.notes(context.forward.notes)
widgets.closing(context, *SIDES[side].code, script=lines)
