"""Which heads do what: every head ranked by a number, heads that do alike, and what flows where."""

from explorer import choices, session, widgets
from explorer.bench import finder, likeness, mixing

SIDES = {
    "Finder": finder.show,
    "Likeness": likeness.show,
    "Rollout": mixing.show_rollout,
    "Flow": mixing.show_flow,
}

widgets.opening(
    "Heads",
    "What every head does with your sentence, in numbers, and what all of them carry together.",
)
reading = session.reading_of_text()
widgets.notes(reading.notes)
side = choices.one_of("Side", "side", list(SIDES), label_visibility="collapsed")
SIDES[side](session.opened(), reading)
