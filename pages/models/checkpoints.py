"""What can be opened and how big it is; then the chosen model, down to single weights."""

import streamlit as st

from explorer.analysis import diagnostics, head_metrics, singular_values, weight_statistics
from explorer.catalog import parameters
from explorer.views import checkpoints
from explorer.views.shared import widgets

CODE = {
    "Ledger": (parameters.ledger,),
    "Weights": (weight_statistics.picture, weight_statistics.summary),
    "Norms": (weight_statistics.summary, weight_statistics.by_layer),
    "Spectra": (singular_values.spectrum, singular_values.noise),
    "Heads": (head_metrics.metrics_of_heads,),
    "Doctor": (diagnostics.of_training, singular_values.passes_for_noise, diagnostics.of_attention),
}

widgets.opening(
    "Checkpoints",
    "Every model that can be opened here and how big it is, before it is read; and what the "
    "chosen one is made of.",
)
checkpoints.shelf()
checkpoints.bring()
opened = checkpoints.opened()
checkpoints.described(opened)
checkpoints.take_away(opened)
view = checkpoints.choose_view()
checkpoints.show(view, opened)
pasted = checkpoints.pasted(view, opened)
widgets.code(*CODE[view], pasted=pasted)
st.space("small")
widgets.page_links("overview", "attention")
