"""Forward pass: every stage of the chosen model in order, with its formula and its values."""

from explorer.analysis.forward_pass.pass_values import recorded
from explorer.analysis.forward_pass.stages import stages_of
from explorer.app.context import PageContext, page_context
from explorer.app.throttle import turn
from explorer.components.fragment import fragment
from explorer.views.forward_pass import stage_values
from explorer.views.shared import export_panel, widgets
from explorer.views.shared.code_panel import code_panel

widgets.opening(
    "Forward pass",
    "Space and the arrow keys step through every stage; after Tab into the matrix, the arrow keys "
    "move its pinned cell.",
)


@fragment()
@turn()
def draw_chosen_stage(context: PageContext) -> None:
    """What one step redraws."""
    stage_values.draw_forward_pass(context)
    widgets.notes(context.forward.notes)
    export_panel.export_button(export_panel.origin(context))
    code_panel(stages_of, recorded, script=stage_values.stage_script(context))


draw_chosen_stage(page_context())
