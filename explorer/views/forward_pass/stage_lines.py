"""The lines of Python that make the stage on screen."""

from __future__ import annotations

from explorer.analysis.forward_pass.stages import stages_of
from explorer.app.context import PageContext
from explorer.snippets import forward_pass_code
from explorer.views.shared.pass_position import STAGE_CHOICES, token_of


def stage_lines(context: PageContext) -> str:
    """For the chosen stage, the chosen head, and the chosen token of the last stack."""
    forward = context.forward
    stages = {each.name: each for each in stages_of(forward.config)}
    name = str(STAGE_CHOICES.texts().get("stage") or "")
    shown = stages.get(name, next(iter(stages.values())))
    stack = forward.config.stacks[-1]
    token = token_of(stack, len(forward.source if stack == "encoder" else forward.target))
    return forward_pass_code.stage(forward, context.folder, shown, context.choice.head, token)
