"""Which heads carry the difference between two texts, how they are wired, and whether it is so."""

from dataclasses import replace

import streamlit as st

from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.catalog import ModelError
from explorer.views.circuits.circuit_view import (
    NO_SNAPSHOTS,
    draw_circuit,
    draw_over_training,
    draw_parts,
)
from explorer.views.circuits.evidence import draw_evidence
from explorer.views.circuits.head_card import draw_head_view
from explorer.views.circuits.patching_view import draw_paths, draw_tracing
from explorer.views.circuits.question_form import draw_question, question_in_words
from explorer.views.circuits.question_scores import draw_finding
from explorer.views.circuits.steering_view import draw_steering
from explorer.views.shared import export_panel, widgets
from explorer.views.shared.training_snapshots import snapshots_of
from explorer.views.shared.widgets import ViewSpec

VIEWS = {
    "Circuit": ViewSpec(
        "The thicker a line, the more of the change it carries; grey is attention.", draw_circuit
    ),
    "Heads": ViewSpec(
        "The stronger a head's colour, the more change it carries; red lowers the metric.",
        draw_parts,
    ),
    "Head card": ViewSpec(
        "One head: what it attends to, how far it fits known patterns, and what it writes.",
        draw_head_view,
    ),
    "Text as evidence": ViewSpec(
        "The lines of a text on which this head is most active; the stronger a token, the more.",
        draw_evidence,
    ),
    "Causal tracing": ViewSpec(
        "A cell takes a token of one layer from the other text: the stronger, the more it changes.",
        draw_tracing,
    ),
    "Path patching": ViewSpec(
        "How much of the change one head hands to another: the stronger the colour, the more.",
        draw_paths,
    ),
    "Steering": ViewSpec(
        "The difference of both texts is added inside the model: see how far the answer moves.",
        draw_steering,
    ),
    "Over training": ViewSpec(
        "How the strongest lines of the circuit grew while the model was trained.",
        draw_over_training,
    ),
}
context = page_context()
grown = VIEWS["Over training"]
if isinstance(context.model, ModelError) or not snapshots_of(context):
    grown = replace(grown, sentence=NO_SNAPSHOTS)
widgets.opening_of_view("Circuits", "circuit_view", VIEWS | {"Over training": grown})
row = st.container(horizontal=True, vertical_alignment="center", key="circuit_row")
picture, below = st.container(), st.container()
with row:  # it stays chosen where there is no question
    view = one_of("circuit_view", tuple(VIEWS), as_list=True, width=220)
question_and_finding, adjust = draw_question(context, picture, below)
if question_and_finding is not None:
    question, finding = question_and_finding
    row.markdown(question_in_words(question), width=720)
    with picture:
        VIEWS[view].draw(context, question, adjust)
    with below:
        draw_finding(context, question, finding)
export_panel.export_button(export_panel.origin(context))
