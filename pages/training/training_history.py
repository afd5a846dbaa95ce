"""A training run as a film: the sentence at every snapshot."""

from explorer.analysis.head_formation import formation_step
from explorer.app.choice import snapshots_of
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.views.shared import export_panel, widgets
from explorer.views.shared.code_panel import script
from explorer.views.training_history import film_view, moments
from explorer.views.training_history.film_view import (
    draw_film,
    draw_formations,
    follow_run,
    is_too_long,
)
from explorer.views.training_history.guessed_pattern import draw_guess

VIEWS = {
    "Film": draw_film,
    "Guess the pattern": draw_guess,
    "Two moments": film_view.draw_two_moments,
    "When heads form": draw_formations,
}

widgets.opening(
    "Training history",
    "The attention, the answer and the loss at every snapshot of a run: drag the slider.",
)
context = page_context()
view = one_of("history_view", list(VIEWS), label_visibility="collapsed")
if not (context.opened and snapshots_of(context.entry)):  # without a model, the page ends here
    moments.draw_no_history(context)
elif VIEWS[view] is draw_film and is_too_long(context.forward):
    pass  # it says so before anything is computed
elif (history := moments.history_of(context)) is not None:
    VIEWS[view](context, history)
    follow_run(history.run)
    run, at = history.run, context.choice
    head = at.place
    lines = script(moments.history_code, run, history.last.text, history.last.pair, *head)
    widgets.closing(export_panel.origin(context) | history.origin, formation_step, script=lines)
