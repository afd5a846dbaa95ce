"""What training does to the inside of a model: one update taken apart, and every snapshot."""

from collections.abc import Callable

import streamlit as st

from explorer.app.controls import one_of
from explorer.views.inside_training.chosen_run import InsideRun, choose_inside_run
from explorer.views.inside_training.landscape_view import draw_landscape
from explorer.views.inside_training.one_update_view import draw_one_update
from explorer.views.inside_training.over_snapshots import (
    draw_dead_units,
    draw_gradient_noise,
    draw_head_scores,
    draw_norms_over_steps,
    draw_singular_values,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script
from models.training import train

widgets.opening(
    "Inside training",
    "One update of a run taken apart, and what training does to the inside of its model.",
)
chooser, switch = st.columns([2, 9], vertical_alignment="center")
chosen = choose_inside_run(chooser)
VIEWS: dict[str, Callable[[InsideRun], Script | None]] = {
    "One update": draw_one_update,
    "Head scores": draw_head_scores,
    "Singular values": draw_singular_values,
    "Weight norms": draw_norms_over_steps,
    "Loss landscape": draw_landscape,
    "Gradient noise": draw_gradient_noise,
    "Dead units": draw_dead_units,
}
with switch:  # it stays chosen where there is no run
    view = one_of("inside_view", tuple(VIEWS), label_visibility="collapsed")
if chosen is not None:
    lines = VIEWS[view](chosen)
    widgets.closing({"run": chosen.run.title}, train, script=lines)
