"""The Checkpoints page: the list of models, forms to open another, six views of one model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from explorer.analysis import diagnostics, head_metrics, singular_values, weight_statistics
from explorer.app.context import PageContext
from explorer.catalog import parameters
from explorer.catalog.open_model import OpenModel
from explorer.views.checkpoints import (
    findings,
    head_metrics_view,
    one_tensor,
    parameter_tree,
    weight_norms,
)
from explorer.views.shared.code_panel import Script


@dataclass(frozen=True)
class CheckpointView:
    """What draws it and returns its pasted lines, and the functions shown in its code panel."""

    draw: Callable[[PageContext, OpenModel], Script]
    code: tuple[Any, ...]


VIEWS = {
    "Parameters": CheckpointView(parameter_tree.draw_parameters, (parameters.parameter_tree,)),
    "Weights": CheckpointView(
        one_tensor.draw_tensor, (weight_statistics.pooled, weight_statistics.tensor_summary)
    ),
    "Norms": CheckpointView(
        weight_norms.draw_weight_norms,
        (weight_statistics.tensor_summary, weight_statistics.by_layer),
    ),
    "Singular values": CheckpointView(
        one_tensor.draw_singular_values,
        (singular_values.singular_values_of, singular_values.random_singular_values),
    ),
    "Heads": CheckpointView(head_metrics_view.draw_head_metrics, (head_metrics.metrics_of_heads,)),
    "Diagnostics": CheckpointView(
        findings.draw_diagnostics,
        (
            diagnostics.training_findings,
            singular_values.looks_random,
            diagnostics.attention_findings,
        ),
    ),
}
"""By their names on screen; only the chosen one is computed."""
