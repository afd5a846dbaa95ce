"""Why one token looks at another: its query, the key, and their product number by number."""

from functools import partial

from explorer.app.context import page_context
from explorer.views.query_key import product
from explorer.views.shared import widgets
from models.attention import attention_scores, attention_weights
from models.positional import RotaryPositions

widgets.opening(
    "Query and key",
    "Why one token looks at another: the query of the one, the key of the other, "
    "their product, and what becomes of it in the stream.",
)
forward = page_context().forward
found = product.show(forward)
widgets.notes(forward.notes)
widgets.code(
    attention_scores,
    attention_weights,
    RotaryPositions.turn,
    pasted=partial(product.pasted, forward, found),
)
