"""Which heads do what: every head ranked by a number, heads that do alike, and what flows where."""

from explorer import session, widgets

widgets.opening("Heads", "Every head ranked by what it does with your sentence.")
reading = session.reading_of_text()
widgets.notes(reading.notes)
