"""The models that can be opened and their sizes; then the chosen one, down to its weights."""

import streamlit as st

from explorer.app import reader_models
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.catalog import ModelError
from explorer.views.checkpoints import VIEWS, chosen_model, models_to_open
from explorer.views.shared import widgets
from explorer.views.shared.widgets import ViewSpec

LIST = ViewSpec(
    "Every model that you can open: what it does, how large it is and how good.",
    models_to_open.draw_model_list,
)
SHOWN = {reader_models.ALL_MODELS: LIST, **VIEWS}
widgets.opening_of_view("Models", "show", SHOWN)
context, entries = page_context(), reader_models.entries()
chosen = st.container()
with chosen:
    show = one_of("show", list(SHOWN), label_visibility="collapsed")
LIST.draw(entries, context.choice.model)
models_to_open.draw_pretrained_models(entries, context.choice.model)
models_to_open.draw_own_model(context)
if show in VIEWS or isinstance(context.model, ModelError):  # of that, what is wrong
    with chosen:
        opened = chosen_model.open_or_examine(context, entries)
        lines = SHOWN[show].draw(context, opened)
        chosen_model.draw_description(opened)
        chosen_model.draw_model_export(opened)
        chosen_model.draw_adapter_export(opened, context.folder)
    widgets.closing(context, *SHOWN[show].code, script=lines)
st.space("small")
widgets.page_links("overview", "attention")
