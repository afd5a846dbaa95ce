"""One head step by step: scores, scaled, masked, softmax, times values; equation and numbers."""

from explorer.app.context import page_context
from explorer.snippets import positions_code
from explorer.views.head_steps.stage_matrices import draw_stages
from explorer.views.shared import export_panel, widgets
from models.attention import attention_scores, attention_weights, scaled_dot_product_attention

widgets.opening(
    "Head, step by step",
    "The attention equation with the numbers of the chosen head: every step is a matrix.",
)
context = page_context()
at, forward = context.choice, context.forward
draw_stages(context)
widgets.notes(forward.notes)
export_panel.export_button(export_panel.origin(context))
widgets.code_panel(
    attention_scores,
    attention_weights,
    scaled_dot_product_attention,
    script=lambda: positions_code.head_stages_script(
        forward, context.folder, (at.part, at.layer, at.head)
    ),
)
