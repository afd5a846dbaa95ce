"""The model's prediction after each layer, and direct logit attribution."""

from explorer.analysis import logit_attribution, logit_lens
from explorer.analysis.output_change import has_words
from explorer.app.context import page_context
from explorer.app.messages import say
from explorer.inference.results_cache import cached
from explorer.views.forward_pass.lens_and_attribution import (
    draw_layer_predictions,
    draw_lens,
    draw_logit_attribution,
    lens_code,
)
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import script
from explorer.views.shared.widgets import choose_output_position
from models.frozen_scales import freeze_norm

widgets.opening(
    "Logit lens",
    "What the model would predict if it stopped after each layer, at every position.",
)
context = page_context()
opened, forward = context.opened, context.forward
lines = None
if opened.config.head == "none":
    say("This model has no output head, so its residual streams give no prediction.")
else:
    position = choose_output_position(context)
    logits = cached(
        opened,
        ("lens", forward.text, forward.pair, position),
        lambda: logit_lens.lens_logits(forward.trace, position),
    )
    if has_words(opened.config):
        draw_lens(context, position)
    draw_layer_predictions(opened, logits, context.choice.layer)
    option = draw_logit_attribution(context, position, logits[-1])
    lines = script(lens_code, forward, position, option)
widgets.notes(forward.notes)
widgets.closing(
    context,
    logit_lens.lens_logits,
    logit_lens.residual_streams,
    logit_attribution.contributions,
    freeze_norm,
    script=lines,
)
