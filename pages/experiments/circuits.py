"""Which heads carry the difference between two texts, how they are wired, and whether it is so."""

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.circuits.text_pairs import Question
from explorer.app.context import PageContext, page_context
from explorer.app.controls import one_of
from explorer.views.circuits.circuit_view import draw_circuit, draw_over_training, draw_parts
from explorer.views.circuits.evidence import draw_evidence
from explorer.views.circuits.head_card import draw_head_view
from explorer.views.circuits.patching_view import draw_paths, draw_tracing
from explorer.views.circuits.question_form import draw_question, question_in_words
from explorer.views.circuits.question_scores import draw_finding
from explorer.views.circuits.steering_view import draw_steering
from explorer.views.shared import export_panel, widgets

VIEWS: dict[str, Callable[[PageContext, Question, DeltaGenerator], None]] = {
    "Circuit": draw_circuit,
    "Heads": draw_parts,
    "Head card": draw_head_view,
    "Text as evidence": draw_evidence,
    "Causal tracing": draw_tracing,
    "Path patching": draw_paths,
    "Steering": draw_steering,
    "Over training": draw_over_training,
}
context = page_context()
widgets.opening(
    "Circuits", "Change one text into the other: which heads carry the change to the answer?"
)
row = st.container(horizontal=True, vertical_alignment="center", key="circuit_row")
picture, below = st.container(), st.container()
with row:  # it stays chosen where there is no question
    view = one_of("circuit_view", tuple(VIEWS), as_list=True, width=220)
question_and_finding, adjust = draw_question(context, picture, below)
if question_and_finding is not None:
    question, finding = question_and_finding
    row.text(question_in_words(question))
    with picture:
        VIEWS[view](context, question, adjust)
    with below:
        draw_finding(context, question, finding)
export_panel.export_button(export_panel.origin(context))
