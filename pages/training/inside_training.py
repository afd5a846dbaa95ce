"""What training does to the inside of a model: one update taken apart, and every snapshot."""

import streamlit as st

from explorer.app.controls import one_of
from explorer.views.inside_training.chosen_run import choose_inside_run
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
from explorer.views.shared.widgets import ViewSpec
from models.training import train

VIEWS = {
    "One update": ViewSpec(
        "One step of the training taken apart: from the examples it reads to the loss after it.",
        draw_one_update,
    ),
    "Head scores": ViewSpec(
        "Each row is a head, each column a saved step: how its attention changes in training.",
        draw_head_scores,
    ),
    "Singular values": ViewSpec(
        "How strongly a matrix stretches what it reads: a line for each of its main directions.",
        draw_singular_values,
    ),
    "Weight norms": ViewSpec(
        "Each line is a part of the model: the higher it is, the larger its weights are by then.",
        draw_norms_over_steps,
    ),
    "Loss landscape": ViewSpec(
        "Height: the loss (error). Floor: weights moved in two directions. Orange: the training.",
        draw_landscape,
    ),
    "Gradient noise": ViewSpec(
        "How many examples a batch can use: beyond the line “noise scale”, more help little.",
        draw_gradient_noise,
    ),
    "Dead units": ViewSpec(
        "Each line is a layer: the share of its units (neurons) that stay off on every example.",
        draw_dead_units,
    ),
}

widgets.opening_of_view("Inside training", "inside_view", VIEWS)
chooser, switch = st.columns([2, 9], vertical_alignment="center")
chosen = choose_inside_run(chooser)
with switch:  # it stays chosen where there is no run
    view = one_of("inside_view", tuple(VIEWS), label_visibility="collapsed")
if chosen is not None:
    lines = VIEWS[view].draw(chosen)
    widgets.closing({"run": chosen.run.title}, train, script=lines)
