"""Why one token attends to another: its query, the key, and their product."""

from explorer.app.context import page_context
from explorer.views.attention.query_key_view import draw_query_key, product_code
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import script
from models.attention import attention_scores, attention_weights
from models.rotary import RotaryPositions

widgets.opening(
    "Query and key",
    "A query attends most to the key with which its dot product is largest.",
)
context = page_context()
at, forward = context.choice, context.forward
pair = draw_query_key(context)
widgets.closing(
    context,
    attention_scores,
    attention_weights,
    RotaryPositions.turn,
    script=script(product_code, forward, *at.place, pair.query, pair.key),
)
