"""One head step by step: scores, scaled, masked, softmax, times values; equation and numbers."""

from explorer.app.context import page_context
from explorer.snippets import positions_code
from explorer.views.head_steps import stage_matrices
from explorer.views.shared import widgets
from models.attention import attention_scores, attention_weights, scaled_dot_product_attention

widgets.opening(
    "Head, step by step",
    "The equation of attention with the chosen head's own numbers: every stage as a matrix, and "
    "one cell held in all of them.",
)
forward = page_context().forward
stage_matrices.show(forward)
widgets.notes(forward.notes)
at, folder = page_context().choice, page_context().folder
widgets.code(
    attention_scores,
    attention_weights,
    scaled_dot_product_attention,
    pasted=lambda: positions_code.stages(forward, folder, (at.part, at.layer, at.head)),
)
