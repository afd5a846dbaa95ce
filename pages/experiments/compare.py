"""Two heads, sentences, models, training steps or passes side by side, and their difference."""

from functools import partial

from explorer.analysis import head_similarity
from explorer.analysis.token_alignment import align_tokens, map_difference, pool_map
from explorer.app.context import page_context
from explorer.views.compare.changed_weights import draw_changed_weights
from explorer.views.compare.compared_maps import (
    compared_code,
    difference_to_export,
    draw_compared_maps,
    draw_outputs,
)
from explorer.views.compare.sides import choose_sides
from explorer.views.shared import export_panel, widgets

context = page_context()
widgets.opening(
    "Compare",
    "Two maps on one colour scale, and a third: blue where the second has more, red where less.",
)
context, first, second = choose_sides(context)
aligned = draw_compared_maps(first, second)
draw_outputs(first, second)
draw_changed_weights(context, first, second)
own: dict[str, export_panel.Make] = {}
if aligned is not None:
    make = partial(difference_to_export, context, first, second, aligned)
    own["map_difference"] = lambda: [make()]
lines = compared_code(first, second, aligned)
widgets.closing(
    context,
    map_difference,
    pool_map,
    align_tokens,
    head_similarity.js_divergence,
    script=lines,
    own=own,
)
