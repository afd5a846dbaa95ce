"""Two heads, sentences, models, training steps or edits side by side, and their difference."""

from explorer import widgets
from explorer.analysis import similarity
from explorer.analysis.comparing import difference
from explorer.bench import comparing

widgets.opening(
    "Compare",
    "The chosen head beside another: two heads, sentences, models or training steps, or the "
    "pass with your edits, on one scale, and what differs.",
)
first, second = comparing.sides()
comparing.show(first, second)
comparing.answers(first, second)
widgets.code(difference, similarity.apart)
