"""Why one token attends to another: its query, the key, and their product."""

from explorer.analysis.score_sources import score_sources
from explorer.app.context import page_context
from explorer.app.controls import option_of
from explorer.views.attention.query_key_view import (
    DISTANCES,
    VIEWS,
    WHY,
    draw_query_key,
    product_code,
    with_distances,
)
from explorer.views.attention.score_sources_view import sources_code
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import script
from models.attention import attention_scores, attention_weights
from models.rotary import RotaryPositions

widgets.opening("Query and key", VIEWS[option_of("pair_view", [*VIEWS])])
context = page_context()
if option_of("pair_view", [*VIEWS]) == DISTANCES:
    context = with_distances(context)
at = context.choice
pair, view, forward = draw_query_key(context)
lines = sources_code if view in WHY else product_code
widgets.closing(
    context,
    *((score_sources,) if view in WHY else (attention_scores, attention_weights)),
    RotaryPositions.turn,
    script=script(lines, forward, *at.place, pair.query, pair.key),
)
