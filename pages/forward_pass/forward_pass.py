"""The whole pass: every stage of the chosen model in order, with its formula and its values."""

from explorer.analysis.forward_pass.pass_stages import stages_of
from explorer.analysis.forward_pass.stage_values import recorded
from explorer.app.context import page_context
from explorer.app.throttle import turn
from explorer.components.alone import alone
from explorer.views.forward_pass import screen
from explorer.views.shared import intervention_lines, widgets

widgets.opening(
    "The whole pass",
    "From the tokens to the answer, one stage at a time: Space and the arrow keys move on.",
)


@alone()
@turn()
def here() -> None:
    """All that a step draws anew."""
    forward = page_context().forward
    screen.show(page_context().opened, forward)
    widgets.notes(forward.notes)
    widgets.code(stages_of, recorded, pasted=lambda: intervention_lines.stage(forward))


here()
