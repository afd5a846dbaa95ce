"""The tutorials' mistakes as exhibits, a quiz to find one, and the systems they come from."""

from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.views.museum.exhibit_view import draw_exhibit
from explorer.views.museum.find_mistake import draw_find_mistake
from explorer.views.museum.mistakes import (
    attention_mistakes,
    output_mistakes,
    position_mistakes,
    stack_mistakes,
)
from explorer.views.museum.systems_view import draw_systems
from explorer.views.shared import widgets

VIEWS = {
    "Exhibits": draw_exhibit,
    "Find the mistake": draw_find_mistake,
    "Systems": draw_systems,
}

widgets.opening(
    "Museum",
    "Fourteen mistakes from four teaching texts on the Transformer: a lecture handout, a notebook "
    "tutorial, a web tutorial and a repository's README. Each is made in a real model beside the "
    "right one: what it breaks, and which measurement gives it away.",
)
context = page_context()
pasted = VIEWS[one_of("room", tuple(VIEWS))](context)
widgets.closing(
    context,
    position_mistakes.doubled_sinusoids,
    output_mistakes.SoftmaxBatch,
    stack_mistakes.LosesTarget,
    stack_mistakes.NeverAppends,
    attention_mistakes.OneForAllHeads,
    attention_mistakes.filled_weights,
    script=pasted,
    label="Code of the mistakes",
)
