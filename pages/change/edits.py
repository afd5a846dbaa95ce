"""Change the pass of the chosen model and see what follows."""

from explorer import session, widgets

widgets.opening("Change the pass", "Change the pass and see what follows.")
reading = session.reading_of_text()
widgets.notes(reading.notes)
