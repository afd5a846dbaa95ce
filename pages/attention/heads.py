"""Which heads do what: every head ranked by a number, heads that do alike, and what flows where."""

from explorer.app import controls
from explorer.app.context import page_context
from explorer.views.heads import finder, rollout_and_flow, similar_heads
from explorer.views.shared import widgets

SIDES = {
    "Finder": finder.show,
    "Likeness": similar_heads.show,
    "Rollout": rollout_and_flow.show_rollout,
    "Flow": rollout_and_flow.show_flow,
}

widgets.opening(
    "Heads",
    "What every head does with your sentence, in numbers, and what all of them carry together.",
)
forward = page_context().forward
widgets.notes(forward.notes)
side = controls.one_of("Side", "side", list(SIDES), label_visibility="collapsed")
SIDES[side](page_context().opened, forward)
