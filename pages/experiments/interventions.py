"""Change the pass of the chosen model and see what follows."""

from explorer.analysis import ablation, faithfulness, output_change
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.views.interventions import edit_forms, head_grid
from explorer.views.shared import edit_history, effects, intervention_lines, widgets
from models import interventions

CODE = {
    "Maps": (interventions.Scale, interventions.SetCell, output_change.kl),
    "Every head": (ablation.without_heads, ablation.parted),
    "Faithfulness": (faithfulness.faithfulness, interventions.KeepCells),
}

widgets.opening(
    "Change the pass",
    "Switch parts of the model off, forbid looks, replace a token: the model runs again, and "
    "what comes out stands beside what came out before.",
)
opened = page_context().opened
forward = page_context().forward
widgets.notes(forward.notes)
made, seen = widgets.side_by_side(8, 7)
with made:
    history, passed = edit_history.history(opened, forward)
    edit_forms.show(opened, forward, passed.forward)
with seen:
    place = effects.place_chosen(opened, forward)
    first = effects.before(opened, forward, history)
    effects.show(opened, first, passed, place)
views = {
    "Maps": lambda: effects.maps(opened, forward, first.forward, passed.forward),
    "Every head": lambda: head_grid.every_head(opened, forward, passed, place),
    "Faithfulness": lambda: head_grid.tested(opened, passed, place),
}
view = one_of("Look at", "look", tuple(views))
views[view]()
pasted = {
    "Maps": lambda: effects.pasted(first, passed),
    "Every head": lambda: intervention_lines.every_head(opened, passed, place),
    "Faithfulness": lambda: intervention_lines.cuts(opened, passed, place),
}
widgets.code(*CODE[view], pasted=pasted[view])
