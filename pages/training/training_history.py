"""A training run as a film: the sentence at every snapshot."""

from explorer.analysis.head_formation import formation_step
from explorer.app.choice import snapshots_of
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.views.shared import export_panel, widgets
from explorer.views.shared.code_panel import script
from explorer.views.shared.widgets import ViewSpec
from explorer.views.training_history import film_view, moments
from explorer.views.training_history.guessed_pattern import draw_guess

VIEWS = {
    "Film": ViewSpec(
        "Drag from step 0 to the end; at “the head forms” it finds its pattern.",
        film_view.draw_film,
    ),
    "Guess the pattern": ViewSpec(
        "Which cells will have weight after training? Guess, then see the head before and after.",
        draw_guess,
    ),
    "Two moments": ViewSpec(
        "One head at two steps of its training; on the right what changed: blue more, red less.",
        film_view.draw_two_moments,
    ),
    "When heads form": ViewSpec(
        "The step at which each head finds its pattern, and what it attends to at that step.",
        film_view.draw_formations,
    ),
}

widgets.opening_of_view("Training history", "history_view", VIEWS)
context = page_context()
view = one_of("history_view", list(VIEWS), label_visibility="collapsed")
if not (context.opened and snapshots_of(context.entry)):  # without a model, the page ends here
    moments.draw_no_history(context)
elif view == "Film" and film_view.is_too_long(context.forward):
    pass  # it says so before anything is computed
elif (history := moments.history_of(context)) is not None:
    VIEWS[view].draw(context, history)
    film_view.follow_run(history.run)
    run, at = history.run, context.choice
    head = at.place
    lines = script(moments.history_code, run, history.last.text, history.last.pair, *head)
    widgets.closing(export_panel.origin(context) | history.origin, formation_step, script=lines)
