"""The Models page: the list of models, forms to open another, and six views of one model."""

from collections.abc import Callable
from typing import Any

from explorer.analysis.diagnostics import attention_findings, training_findings
from explorer.analysis.head_metrics import metrics_of_heads
from explorer.analysis.singular_values import (
    looks_random,
    random_singular_values,
    singular_values_of,
)
from explorer.analysis.weight_statistics import by_layer, pooled, tensor_summary
from explorer.app.context import PageContext
from explorer.catalog import parameters
from explorer.catalog.opened_model import OpenModel
from explorer.views.attention.head_finder import draw_head_metrics
from explorer.views.checkpoints.chosen_model import draw_diagnostics
from explorer.views.checkpoints.parameter_tree import draw_parameters
from explorer.views.checkpoints.weights import draw_singular_values, draw_tensor, draw_weight_norms
from explorer.views.shared.code_panel import Script

Draw = Callable[[PageContext, OpenModel], Script]
VIEWS: dict[str, tuple[Draw, tuple[Any, ...]]] = {
    "Parameters": (draw_parameters, (parameters.parameter_tree,)),
    "Weights": (draw_tensor, (pooled, tensor_summary)),
    "Norms": (draw_weight_norms, (tensor_summary, by_layer)),
    "Singular values": (draw_singular_values, (singular_values_of, random_singular_values)),
    "Heads": (draw_head_metrics, (metrics_of_heads,)),
    "Diagnostics": (draw_diagnostics, (training_findings, looks_random, attention_findings)),
}
"""For each view, the function that draws it and returns its code, and those of its code panel."""
