"""The models that can be opened and their sizes; then the chosen one, down to its weights."""

import streamlit as st

from explorer.analysis.diagnostics import attention_findings, training_findings
from explorer.analysis.head_metrics import metrics_of_heads
from explorer.analysis.singular_values import (
    looks_random,
    random_singular_values,
    singular_values_of,
)
from explorer.analysis.weight_statistics import by_layer, pooled, tensor_summary
from explorer.app import reader_models
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.catalog import ModelError, parameters
from explorer.views.attention.head_finder import draw_head_metrics
from explorer.views.checkpoints import chosen_model, models_to_open
from explorer.views.checkpoints.parameter_tree import draw_parameters
from explorer.views.checkpoints.weights import draw_singular_values, draw_tensor, draw_weight_norms
from explorer.views.shared import widgets
from explorer.views.shared.widgets import ViewSpec

VIEWS = {
    "Parameters": ViewSpec(
        "Where the model's numbers are: the taller a box, the more of them are in this part.",
        draw_parameters,
        (parameters.parameter_tree,),
    ),
    "Weights": ViewSpec(
        "One table of the numbers that training set: the stronger the colour, the further from 0.",
        draw_tensor,
        (pooled, tensor_summary),
    ),
    "Norms": ViewSpec(
        "How large the numbers in each part are: the stronger a cell, the larger.",
        draw_weight_norms,
        (tensor_summary, by_layer),
    ),
    "Singular values": ViewSpec(
        "How far a matrix stretches each direction, beside a matrix of random numbers (dashed).",
        draw_singular_values,
        (singular_values_of, random_singular_values),
    ),
    "Heads": ViewSpec(
        "Each cell is a head, and its number says how the head reads your sentence.",
        draw_head_metrics,
        (metrics_of_heads,),
    ),
    "Diagnostics": ViewSpec(
        "What is wrong or unusual with this model, and what was checked and is right.",
        chosen_model.draw_diagnostics,
        (training_findings, looks_random, attention_findings),
    ),
}
LIST = ViewSpec(
    "Every model that you can open: what it does, its size and its score.",
    models_to_open.draw_model_list,
)
SHOWN = {reader_models.ALL_MODELS: LIST, **VIEWS}
widgets.opening_of_view("Models", "show", SHOWN)
context, entries = page_context(), reader_models.entries()
chosen = st.container()
with chosen:
    show = one_of("show", list(SHOWN), label_visibility="collapsed")
LIST.draw(entries, context.choice.model)
models_to_open.draw_pretrained_models(entries, context.choice.model)
models_to_open.draw_own_model(context)
if show in VIEWS or isinstance(context.model, ModelError):  # of that, what is wrong
    with chosen:
        opened = chosen_model.open_or_examine(context, entries)
        lines = SHOWN[show].draw(context, opened)
        chosen_model.draw_description(opened)
        chosen_model.draw_model_export(opened)
        chosen_model.draw_adapter_export(opened, context.folder)
    widgets.closing(context, *SHOWN[show].code, script=lines)
st.space("small")
widgets.page_links("overview", "attention")
