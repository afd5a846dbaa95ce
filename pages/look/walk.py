"""The whole pass: every stage of the chosen model in order, with its formula and its values."""

from explorer import session, widgets
from explorer.analysis.walk import stages_of
from explorer.analysis.walk_values import recorded
from explorer.bench import pasting, walk
from explorer.components.alone import alone
from explorer.turns import turn

widgets.opening(
    "The whole pass",
    "From the tokens to the answer, one stage at a time: Space and the arrow keys move on.",
)


@alone("spine", "matrix", "chips")
@turn()
def here() -> None:
    """All that a step draws anew."""
    reading = session.reading_of_text()
    walk.show(session.opened(), reading)
    widgets.notes(reading.notes)
    widgets.code(stages_of, recorded, pasted=lambda: pasting.stage(reading))


here()
