"""One head step by step: scores, scaled, masked, softmax, times values; equation and numbers."""

from explorer.app.context import page_context
from explorer.app.controls import option_of
from explorer.views.attention.head_steps_view import UP_TO, draw_stages, steps_code
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import script
from models.attention import attention_scores, attention_weights, scaled_dot_product_attention

widgets.opening("Head, step by step", UP_TO[option_of("up_to", [*UP_TO])])
context = page_context()
at, forward = context.choice, context.forward
draw_stages(context)
widgets.notes(forward.notes)
widgets.closing(
    context,
    attention_scores,
    attention_weights,
    scaled_dot_product_attention,
    script=script(steps_code, forward, *at.place),
)
