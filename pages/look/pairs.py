"""Why one token looks at another: its query, the key, and their product number by number."""

from explorer import session, widgets

widgets.opening(
    "Query and key",
    "Why one token looks at another: the query of the one, the key of the other, and their product.",
)
reading = session.reading_of_text()
widgets.notes(reading.notes)
