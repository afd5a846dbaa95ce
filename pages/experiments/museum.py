"""The tutorials' mistakes as exhibits, a hunt for one, and the systems they come from."""

from explorer.analysis.position_experiments import doubled_sinusoids
from explorer.app.controls import one_of
from explorer.views.museum import exhibit_view, find_it, systems_view
from explorer.views.museum.mistakes import (
    attention_mistakes,
    output_mistakes,
    stack_mistakes,
)
from explorer.views.shared import widgets

ROOMS = {
    "Exhibits": exhibit_view.show,
    "Find it": find_it.show,
    "The systems": systems_view.show,
}

widgets.opening(
    "Museum",
    "Fourteen mistakes of four teaching texts on the Transformer: a lecture handout, a notebook "
    "tutorial, a web tutorial and a repository's README. A model that really runs makes each: what "
    "it breaks, and what gives it away.",
)
pasted = ROOMS[one_of("Room", "room", tuple(ROOMS))]()
widgets.code(
    doubled_sinusoids,
    output_mistakes.SoftmaxBatch,
    stack_mistakes.LosesTarget,
    stack_mistakes.NeverAppends,
    attention_mistakes.OneForAllHeads,
    attention_mistakes.filled_weights,
    pasted=pasted,
    label="The code of the mistakes",
)
