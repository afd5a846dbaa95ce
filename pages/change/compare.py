"""Two heads, sentences, models, training steps or edits side by side, and their difference."""

from functools import partial

from explorer import widgets
from explorer.analysis import similarity
from explorer.analysis.comparing import difference
from explorer.bench import comparing, taking_away

widgets.opening(
    "Compare",
    "The chosen head beside another: two heads, sentences, models or training steps, or the "
    "pass with your edits, on one scale, and what differs.",
    takes_away=True,
)
first, second = comparing.sides()
found = comparing.show(first, second)
if found is not None:
    taking_away.take_away(partial(comparing.taken, first, second, found))
comparing.answers(first, second)
widgets.code(difference, similarity.apart, pasted=partial(comparing.pasted, first, second))
