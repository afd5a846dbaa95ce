"""What can be opened and how big it is; then the chosen model, down to single weights."""

import streamlit as st

from explorer import checkpoints, parameters, widgets
from explorer.analysis import doctor, heads, spectra, weights

CODE = {
    "Ledger": (parameters.ledger,),
    "Weights": (weights.picture, weights.summary),
    "Norms": (weights.summary, weights.by_layer),
    "Spectra": (spectra.spectrum, spectra.noise),
    "Heads": (heads.of_heads,),
    "Doctor": (doctor.of_training, spectra.passes_for_noise, doctor.of_attention),
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
widgets.ways_on("start", "attention")
