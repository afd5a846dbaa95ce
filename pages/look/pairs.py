"""Why one token looks at another: its query, the key, and their product number by number."""

from functools import partial

from explorer import session, widgets
from explorer.bench import pairs
from models.attention import attention_scores, attention_weights
from models.positional import RotaryPositions

widgets.opening(
    "Query and key",
    "Why one token looks at another: the query of the one, the key of the other, "
    "their product, and what becomes of it in the stream.",
)
reading = session.reading_of_text()
found = pairs.show(reading)
widgets.notes(reading.notes)
widgets.code(
    attention_scores,
    attention_weights,
    RotaryPositions.turn,
    pasted=partial(pairs.pasted, reading, found),
)
