"""A sentence that grows token by token, and the map of the chosen head with it."""

from explorer import session, widgets
from explorer.bench import growing
from explorer.snippets import whole
from models.generation import choose_from, generate

widgets.opening(
    "Writing",
    "The model goes on with your sentence, one token at a time; the map of a head grows with it.",
)
grown = growing.written()
growing.show(grown)
widgets.notes(grown.reading.notes)
widgets.code(
    generate,
    choose_from,
    pasted=lambda: whole.writing(grown.reading, grown.begun, grown.steps, session.folder()),
)
