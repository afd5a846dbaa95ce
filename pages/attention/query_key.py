"""Why one token attends to another: its query, the key, and their product."""

from functools import partial

from explorer.app.context import page_context
from explorer.snippets.attention_code import query_key_script
from explorer.views.query_key.product import draw_query_key
from explorer.views.shared import export_panel, widgets
from models.attention import attention_scores, attention_weights
from models.rotary import RotaryPositions

widgets.opening(
    "Query and key",
    "Why one token attends to another: its query, the key of the other, their product, and what "
    "it adds to the residual stream.",
)
context = page_context()
at, forward = context.choice, context.forward
found = draw_query_key(context)
widgets.notes(forward.notes)
here = at.part, at.layer, at.head
export_panel.export_button(export_panel.origin(context))
widgets.code_panel(
    attention_scores,
    attention_weights,
    RotaryPositions.turn,
    script=partial(query_key_script, forward, context.folder, here, found.query, found.key),
)
