"""Forward pass: every stage of the chosen model in order, with its formula and its values."""

from explorer.analysis.forward_pass.pass_values import record_pass
from explorer.analysis.forward_pass.stages import stages_of
from explorer.app.context import PageContext, page_context
from explorer.app.throttle import turn
from explorer.components.fragment import fragment
from explorer.views.forward_pass import stage_values
from explorer.views.shared import widgets

widgets.opening(
    "Forward pass",
    "Every stage that your sentence passes through, from its tokens to the model's answer.",
)


@fragment()
@turn()
def draw_chosen_stage(context: PageContext) -> None:
    """What one step redraws."""
    stage_values.draw_forward_pass(context)
    stage_values.draw_notebook_batch()
    widgets.notes(context.forward.notes)
    widgets.closing(context, stages_of, record_pass, script=stage_values.stage_script(context))


draw_chosen_stage(page_context())
