"""Every training run: search, compare, race, delete and restore runs."""

import streamlit as st

from explorer.app.controls import one_of
from explorer.runs.run_differences import what_differs
from explorer.runs.sweep import grid
from explorer.system.data_folders import runs_root
from explorer.views.runs import races, run_comparison, run_table
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import script
from explorer.views.shared.widgets import ViewSpec

VIEWS = {
    "All runs": ViewSpec(
        "The lower the loss, the better the answers; held out: on examples it never trained on.",
        run_table.draw_table,
    ),
    "Races and sweeps": ViewSpec(
        "Several runs of one task train together: the run whose loss falls first learns fastest.",
        lambda controls: races.draw_races(),
    ),
}

widgets.opening_of_view("Runs", "runs_view", VIEWS)
controls = st.container(horizontal=True, vertical_alignment="center")
with controls:
    view = one_of("runs_view", list(VIEWS), label_visibility="collapsed")
compared = VIEWS[view].draw(controls)
folder = compared[0].folder.parent if compared else runs_root()
lines = script(run_comparison.runs_code, folder, [run.title for run in compared])
widgets.closing({"view": view}, grid, what_differs, script=lines)
