"""The tutorials' mistakes as exhibits, a quiz to find one, and the systems they come from."""

from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.views.museum import mistakes
from explorer.views.museum.document_systems import draw_systems
from explorer.views.museum.exhibit_view import draw_exhibit
from explorer.views.museum.find_mistake import draw_find_mistake
from explorer.views.shared import widgets

VIEWS = {"Exhibits": draw_exhibit, "Find the mistake": draw_find_mistake, "Systems": draw_systems}

widgets.opening(
    "Museum",
    "Fourteen mistakes from four teaching texts on the Transformer: a lecture handout, a notebook "
    "tutorial, a web tutorial and a repository's README. Twelve are made in a copy of the chosen "
    "model, beside the correct one: see what each breaks, and which measurement shows it.",
)
context = page_context()
lines = VIEWS[one_of("room", tuple(VIEWS))](context)
widgets.closing(
    context,
    mistakes.doubled_sinusoids,
    mistakes.softmax_output,
    mistakes.LosesTarget,
    mistakes.NeverAppends,
    mistakes.OneForAllHeads,
    mistakes.filled_weights,
    script=lines,
    label="Code of the mistakes",
)
