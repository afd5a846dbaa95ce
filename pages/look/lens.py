"""What the model would answer if it stopped after each layer."""

from functools import partial

from explorer import session, widgets
from explorer.analysis import contributions, frozen, lens
from explorer.bench import lenses
from explorer.snippets import looking

widgets.opening(
    "Logit lens",
    "What the model would answer if it stopped after each layer, and what every head and "
    "feed-forward layer adds to its answer.",
)
reading = session.reading_of_text()
shown = lenses.show(session.opened(), reading)
widgets.notes(reading.notes)
if shown is not None:
    widgets.notes(
        ["Only the last row was trained to be read like this: early ones may say little."]
    )
widgets.code(
    lens.lens,
    lens.streams,
    contributions.contributions,
    frozen.before_norm,
    pasted=None if shown is None else partial(looking.lens, reading, session.folder(), *shown),
)
