"""Change the pass of the chosen model and see what follows."""

from explorer import session, widgets
from explorer.analysis import ablation, changes, faithfulness
from explorer.bench import changing, effects, forms, grid_of_changes, pasting
from explorer.choices import one_of
from models import interventions

CODE = {
    "Maps": (interventions.Scale, interventions.SetCell, changes.kl),
    "Every head": (ablation.without_heads, ablation.parted),
    "Faithfulness": (faithfulness.faithfulness, interventions.KeepCells),
}

widgets.opening(
    "Change the pass",
    "Switch parts of the model off, forbid looks, replace a token: the model runs again, and "
    "what comes out stands beside what came out before.",
)
opened = session.opened()
reading = session.reading_of_text()
widgets.notes(reading.notes)
made, seen = widgets.side_by_side(8, 7)
with made:
    history, passed = changing.history(opened, reading)
    forms.show(opened, reading, passed.reading)
with seen:
    place = effects.place_chosen(opened, reading)
    first = effects.before(opened, reading, history)
    effects.show(opened, first, passed, place)
views = {
    "Maps": lambda: effects.maps(opened, reading, first.reading, passed.reading),
    "Every head": lambda: grid_of_changes.every_head(opened, reading, passed, place),
    "Faithfulness": lambda: grid_of_changes.tested(opened, passed, place),
}
view = one_of("Look at", "look", tuple(views))
views[view]()
pasted = {
    "Maps": lambda: effects.pasted(first, passed),
    "Every head": lambda: pasting.every_head(opened, passed, place),
    "Faithfulness": lambda: pasting.cuts(opened, passed, place),
}
widgets.code(*CODE[view], pasted=pasted[view])
