"""Two heads, sentences, models, training steps or edits side by side, and their difference."""

from functools import partial

from explorer.analysis import head_similarity
from explorer.analysis.comparison import difference
from explorer.views.compare import sides
from explorer.views.shared import export_panel, widgets

widgets.opening(
    "Compare",
    "The chosen head beside another: two heads, sentences, models or training steps, or the "
    "pass with your edits, on one scale, and what differs.",
    exports=True,
)
first, second = sides.sides()
found = sides.show(first, second)
if found is not None:
    export_panel.export_button(partial(sides.taken, first, second, found))
sides.answers(first, second)
widgets.code(difference, head_similarity.js_divergence, pasted=partial(sides.pasted, first, second))
