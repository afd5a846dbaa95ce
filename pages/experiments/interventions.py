"""Ablations, masks, replaced tokens, patches, directions: what they do to the output."""

import streamlit as st

from explorer.analysis import ablation, batch_edits, faithfulness, output_change
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.views.interventions.edge_cutting import draw_faithfulness
from explorer.views.interventions.edit_forms import draw_edit_form
from explorer.views.interventions.head_grid import draw_head_grid
from explorer.views.interventions.map_comparison import draw_maps
from explorer.views.interventions.output_effects import choose_baseline, draw_output_change
from explorer.views.shared import export_panel, widgets
from explorer.views.shared.code_panel import code_panel
from explorer.views.shared.edit_history import draw_history
from explorer.views.shared.widgets import choose_output_position
from models import interventions

CODE = {
    "Attention maps": (interventions.Scale, interventions.SetCell, output_change.kl),
    "Every head": (ablation.ablate_every_head, ablation.run_branches),
    "Faithfulness": (faithfulness.faithfulness, batch_edits.KeepCells),
}

context = page_context()
widgets.opening(
    "Interventions",
    "Ablate heads, cut edges, mask keys, replace tokens, patch activations or steer: the model "
    "runs again, and its output is shown before and after.",
)
widgets.notes(context.forward.notes)
forms, output = widgets.side_by_side(8, 7)
with forms:
    form = st.container()
    history, edited = draw_history(context)
with form:
    draw_edit_form(context, edited.forward)
with output:
    position = choose_output_position(context)
    baseline = choose_baseline(context, history)
    tracked = draw_output_change(context, baseline, edited, position)
views = {
    "Attention maps": lambda: draw_maps(context, baseline, edited, position, tracked),
    "Every head": lambda: draw_head_grid(context, edited, position),
    "Faithfulness": lambda: draw_faithfulness(context, edited, position),
}
view = one_of("look", tuple(views))
lines = views[view]()
export_panel.export_button(export_panel.origin(context))
code_panel(*CODE[view], script=lines)
