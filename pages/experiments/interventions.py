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
from models import interventions

CODE = {
    "Attention maps": (interventions.Scale, interventions.SetCell, output_change.kl),
    "Patch lens": (interventions.ReplaceAt, logit_lens.can_change),
    "Every head": (ablation_and_patching.ablate_every_head, batched_passes.run_branches),
    "Faithfulness": (map_faithfulness.faithfulness, batch_edits.KeepCells),
}
VIEWS = tuple(CODE)
DRAWN = dict(zip(VIEWS[1:], (draw_patch_lens, draw_head_grid, draw_faithfulness), strict=True))
context = page_context()
widgets.opening(
    "Interventions",
    "Change one thing in the pass, and see the maps and the output before and after.",
)
widgets.notes(context.forward.notes)
row = st.container(horizontal=True, vertical_alignment="center", gap="small", key="edit_row")
picture, listed, first, below, second, notes = (st.container() for _ in range(6))
with row:
    view = one_of("look", VIEWS, as_list=True, width=140, label_visibility="collapsed")
with listed:
    history, edited = draw_history(context, field=notes, empty=below)
with below:
    baseline = choose_baseline(context, history)
with row:
    draw_edit_form(context, edited.forward, FormPlaces(picture, notes))
    if view != "Patch lens":  # it has an example of its own
        draw_example(context, history)
is_map = view == VIEWS[0]
height: tuple[str, ...] = ()
if is_map and changes_only_output(context, history, baseline, edited):
    first, second, height = second, first, (WINDOW,)
with second:
    position, tracked = draw_output_change(context, baseline, edited, listed, *height)
with first:
    if is_map:
        lines: Script | None = draw_maps(context, baseline, edited, position, tracked)
    else:
        lines = DRAWN[view](context, edited, position)
widgets.closing(context, *CODE[view], script=lines)
