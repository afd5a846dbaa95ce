"""What training does to the inside of a model: one update taken apart, and every snapshot."""

from collections.abc import Callable

from explorer.app.controls import one_of
from explorer.views.inside_training.chosen_run import CodeLines, InsideRun, choose_inside_run
from explorer.views.inside_training.one_update_view import draw_one_update
from explorer.views.shared import export_panel, widgets
from models.training import train

widgets.opening(
    "Inside training",
    "One update of a run taken apart, and what training does to the inside of its model.",
)
chosen = choose_inside_run()
VIEWS: dict[str, Callable[[InsideRun], CodeLines]] = {
    "One update": draw_one_update,
}
view = one_of("View", "inside_view", tuple(VIEWS))  # it stays chosen where there is no run
if chosen is not None:
    lines = VIEWS[view](chosen)
    export_panel.export_button({"run": chosen.run.title})
    widgets.code_panel(train, script=lines)
