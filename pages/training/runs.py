"""Every training run: search, compare, race, delete and restore runs."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from explorer.app.controls import one_of
from explorer.runs.run import Run
from explorer.runs.run_differences import what_differs
from explorer.runs.sweep import grid
from explorer.system.data_folders import runs_root
from explorer.views.runs import races, run_comparison, run_table
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import script

widgets.opening("Runs", "Every training run: compare several, or let them race.")
controls = st.container(horizontal=True, vertical_alignment="center")
VIEWS: dict[str, Callable[[], list[Run]]] = {
    "All runs": partial(run_table.draw_table, controls),
    "Races and sweeps": races.draw_races,
}
with controls:
    view = one_of("runs_view", [*VIEWS], label_visibility="collapsed")
compared = VIEWS[view]()
folder = compared[0].folder.parent if compared else runs_root()
lines = script(run_comparison.runs_code, folder, [run.title for run in compared])
widgets.closing({"view": view}, grid, what_differs, script=lines)
