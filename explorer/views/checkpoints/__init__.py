"""The Models page: the list of models, forms to open another, and six views of one model."""

from explorer.analysis.diagnostics import attention_findings, training_findings
from explorer.analysis.head_metrics import metrics_of_heads
from explorer.analysis.singular_values import (
    looks_random,
    random_singular_values,
    singular_values_of,
)
from explorer.analysis.weight_statistics import by_layer, pooled, tensor_summary
from explorer.catalog import parameters
from explorer.views.attention.head_finder import draw_head_metrics
from explorer.views.checkpoints.chosen_model import draw_diagnostics
from explorer.views.checkpoints.parameter_tree import draw_parameters
from explorer.views.checkpoints.weights import draw_singular_values, draw_tensor, draw_weight_norms
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
        "How large the numbers in each part are: the darker a cell, the larger they are.",
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
        draw_diagnostics,
        (training_findings, looks_random, attention_findings),
    ),
}
