"""Train a model here, and watch its attention form."""

from functools import partial

import streamlit as st

from explorer.snippets import forward_pass_code
from explorer.views import training
from explorer.views.shared import widgets
from models.training import learning_rate, train

widgets.opening(
    "Train",
    "A small model learns a task in front of you; its attention is drawn as it forms.",
)
asked, seen = st.columns([2, 5], gap="large")
with asked:
    task = training.form()
with seen:
    run = training.choose_run()
    if run is not None:
        training.show(run)
        training.open_elsewhere(run)
    elif task is not None:
        training.preview(task)
training.earlier_runs()
spec = training.asked_for(run)
widgets.code(
    train, learning_rate, pasted=partial(forward_pass_code.training, spec) if spec else None
)
