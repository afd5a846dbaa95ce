"""A model of the reader's own: uploaded, or named by a path or hub ID if the server allows it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from explorer.app import reader_models, streamlit_patches, widget_state
from explorer.app.context import PageContext
from explorer.app.messages import keep_note, say, take_notes
from explorer.app.reader import is_local, network_digest, owner
from explorer.app.received_uploads import RECEIVED
from explorer.app.session import redraw, session, state_of
from explorer.app.streamlit_patches import Upload
from explorer.catalog import ModelError
from explorer.catalog.available_models import brought_model
from explorer.catalog.typed_model_path import ALLOW_PATHS, find_model, paths_allowed
from explorer.catalog.uploads import KeptUpload, Uploader, keep_upload, skipped_files
from explorer.system import limits
from explorer.system.data_folders import uploads_root
from models.families import FAMILIES

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
CLOSED = (
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
            st.caption(CLOSED_TO_ALL if limits.is_public() else CLOSED)
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
