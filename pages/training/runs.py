"""Every training run: found, compared, raced against others, deleted and brought back."""

from functools import partial

from explorer.app.controls import one_of
from explorer.runs.differing import what_differs
from explorer.runs.sweep import grid
from explorer.snippets import runs_code
from explorer.views.runs import races, run_table, scheduler_field
from explorer.views.shared import export_panel, widgets

VIEWS = {"All runs": run_table.draw_table, "Races and sweeps": races.draw_races}

widgets.opening("Runs", "Every training run: compare several, or let them race.")
view = one_of("runs_view", [*VIEWS], label_visibility="collapsed")
compared = VIEWS[view]()
scheduler_field.draw_scheduler_field()
export_panel.export_button({"view": view})
widgets.code_panel(grid, what_differs, script=partial(runs_code.compared, compared))
