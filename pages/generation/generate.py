"""A sentence that grows token by token, and the map of the chosen head with it."""

from explorer.app.context import page_context
from explorer.snippets import forward_pass_code
from explorer.views.shared import growing_text, widgets
from models.generation import generate
from models.sampling import choose_from

widgets.opening(
    "Writing",
    "The model goes on with your sentence, one token at a time; the map of a head grows with it.",
)
grown = growing_text.written()
growing_text.show(grown)
widgets.notes(grown.forward.notes)
widgets.code(
    generate,
    choose_from,
    pasted=lambda: forward_pass_code.writing(
        grown.forward, grown.begun, grown.steps, page_context().folder
    ),
)
