"""What the model would answer if it stopped after each layer."""

from functools import partial

from explorer.analysis import frozen_norms, logit_attribution, logit_lens
from explorer.app.context import page_context
from explorer.snippets import attention_code
from explorer.views.logit_lens import layer_predictions
from explorer.views.shared import widgets

widgets.opening(
    "Logit lens",
    "What the model would answer if it stopped after each layer, and what every head and "
    "feed-forward layer adds to its answer.",
)
forward = page_context().forward
shown = layer_predictions.show(page_context().opened, forward)
widgets.notes(forward.notes)
if shown is not None:
    widgets.notes(
        ["Only the last row was trained to be read like this: early ones may say little."]
    )
widgets.code(
    logit_lens.lens,
    logit_lens.streams,
    logit_attribution.contributions,
    frozen_norms.before_norm,
    pasted=None
    if shown is None
    else partial(attention_code.logit_lens_script, forward, page_context().folder, *shown),
)
