"""Ablations, masks, replaced tokens, patches, directions: what they do to the output."""

import streamlit as st

from explorer.analysis import (
    ablation_and_patching,
    batch_edits,
    batched_passes,
    logit_lens,
    map_faithfulness,
    output_change,
)
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.charts.figure_data import WINDOW
from explorer.views.interventions.edit_forms import FormPlaces, draw_edit_form
from explorer.views.interventions.intervention_effects import (
    changes_only_output,
    choose_baseline,
    draw_example,
    draw_maps,
    draw_output_change,
)
from explorer.views.interventions.many_passes import draw_faithfulness, draw_head_grid
from explorer.views.interventions.patch_lens import draw_patch_lens
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script
from explorer.views.shared.edit_history import draw_history
from explorer.views.shared.widgets import ViewSpec
from models import interventions

VIEWS = {
    "Attention maps": ViewSpec(
        "Change one thing in the pass, and see the maps and the output before and after.",
        draw_maps,
        (interventions.Scale, interventions.SetCell, output_change.kl),
    ),
    "Patch lens": ViewSpec(
        "Put one cell of another text's pass into yours: a cell is the word predicted there.",
        draw_patch_lens,
        (interventions.ReplaceAt, logit_lens.can_change),
    ),
    "Every head": ViewSpec(
        "A cell is a head: how far the answer moves (KL) if it alone is ablated or patched.",
        draw_head_grid,
        (ablation_and_patching.ablate_every_head, batched_passes.run_branches),
    ),
    "Faithfulness": ViewSpec(
        "How far the answer moves as attention weights are cut, the strongest first or at random.",
        draw_faithfulness,
        (map_faithfulness.faithfulness, batch_edits.KeepCells),
    ),
}
context = page_context()
widgets.opening_of_view("Interventions", "look", VIEWS)
widgets.notes(context.forward.notes)
row = st.container(horizontal=True, vertical_alignment="center", gap="small", key="edit_row")
picture, listed, first, below, second, notes = (st.container() for _ in range(6))
with row:
    view = one_of("look", list(VIEWS), as_list=True, width=140, label_visibility="collapsed")
with listed:
    history, edited = draw_history(context, field=notes, empty=below)
with below:
    baseline = choose_baseline(context, history)
with row:
    if view != "Patch lens":  # it has an example of its own
        draw_example(context, history)
    draw_edit_form(context, edited.forward, FormPlaces(picture, notes))
is_map = view == "Attention maps"
height: tuple[str, ...] = ()
if is_map and changes_only_output(context, history, baseline, edited):
    first, second, height = second, first, (WINDOW,)
with second:
    position, tracked = draw_output_change(context, baseline, edited, listed, *height)
with first:
    if is_map:
        lines: Script | None = draw_maps(context, baseline, edited, position, tracked)
    else:
        lines = VIEWS[view].draw(context, edited, position)
widgets.closing(context, *VIEWS[view].code, script=lines)
