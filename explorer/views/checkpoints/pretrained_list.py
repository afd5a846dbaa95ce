"""The pretrained models: what each is good to look at, and one click that gets or opens it."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from explorer.app.choosing import choose_model
from explorer.app.messages import say
from explorer.app.session import state_of
from explorer.catalog import background_downloads
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.background_downloads import DownloadState
from explorer.catalog.pretrained_models import PRETRAINED_MODELS, PretrainedModel
from explorer.text.labels import literal
from explorer.text.number_format import megabytes
from explorer.views.shared.download_offer import (
    begin,
    draw_progress,
    may_add,
    open_when_there,
    size_in_words,
)

WIDTHS = (66, 22, 12)
ABOUT = (
    "Published models, downloaded when you ask for one: from the Python registry or from the hub. "
    "No code of theirs is run. They are kept, for everybody who opens this app."
)
CLOSED = (
    "Published models. The person who runs this server adds them on its machine, for example with "
    "`python -m explorer get smollm2`. No code of theirs is run."
)


@dataclass
class Unfolded:
    """The pretrained models were shown unfolded once; they do not fold themselves."""

    once: bool = False


def draw_pretrained_list(entries: Sequence[ModelEntry], chosen: str) -> None:
    """A row for each; unfolded where a first one can be added, or one is being downloaded."""
    states = {
        name: background_downloads.state_of(model) for name, model in PRETRAINED_MODELS.items()
    }
    for name, state in states.items():
        open_when_there(PRETRAINED_MODELS[name], state)
    kinds = {state.kind for state in states.values()}
    unfolded = state_of(Unfolded)
    is_new = may_add() and "there" not in kinds
    unfolded.once = unfolded.once or is_new or "running" in kinds
    with st.expander("Pretrained models", expanded=unfolded.once):
        st.caption(ABOUT if may_add() else CLOSED)
        with st.container(key="pretrained_models", gap="xsmall"):
            for name, model in PRETRAINED_MODELS.items():
                entry = next((each for each in entries if each.folder == model.folder), None)
                _draw_row(model, states[name], entry, chosen)


def _draw_row(
    model: PretrainedModel, state: DownloadState, entry: ModelEntry | None, chosen: str
) -> None:
    words, size, button = st.columns(WIDTHS, gap="small", vertical_alignment="center")
    with words.container(gap=None):
        st.markdown(f"**{literal(model.title)}** · {model.kind}")
        st.caption(literal(model.good_for[:1].upper() + model.good_for[1:]))
    about = f"{size_in_words(model)}, {model.licence}"
    size.caption(about, text_alignment="right")
    with button:
        _draw_button(model, state, entry, chosen)
    if state.kind == "running":
        draw_progress(model, "list")
    elif state.fault:
        say(state.fault)


def _draw_button(
    model: PretrainedModel, state: DownloadState, entry: ModelEntry | None, chosen: str
) -> None:
    if state.kind == "there":
        is_chosen = entry is not None and entry.name == chosen
        st.button(
            "Chosen" if is_chosen else "Open",
            key=f"open_pretrained_{model.name}",
            on_click=choose_model,
            args=(entry.name if entry else "",),
            disabled=is_chosen or entry is None or entry.config is None,
            width="stretch",
        )
    elif state.kind == "absent" and may_add():
        st.button(
            "Resume" if state.left else "Get",
            key=f"get_{model.name}",
            on_click=begin,
            args=(model,),
            help=f"{megabytes(state.left)} are there already." if state.left else None,
            width="stretch",
        )
