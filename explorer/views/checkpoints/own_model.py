"""A model of the reader's own: uploaded, or named by a path or hub ID where that is allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from explorer.app import limits, shelves, streamlit_patches
from explorer.app.context import PageContext
from explorer.app.local_reader import is_local
from explorer.app.messages import say
from explorer.app.reader import network, owner
from explorer.app.received_uploads import RECEIVED
from explorer.app.session import session
from explorer.app.streamlit_patches import Upload
from explorer.catalog import ModelError
from explorer.catalog.available_models import brought_model
from explorer.catalog.folders import ALLOW_PATHS, find_model, paths_allowed, uploads_root
from explorer.catalog.uploads import KeptUpload, Uploader, keep_upload, skipped_files

HELP = (
    "config.json, the weights as safetensors, the tokenizer's files, and the run.json of a model "
    "trained here; others are skipped. The model is kept for a while, under its folder's name and "
    "a key that only you know."
)
GGUF_HELP = "One file with config, weights and tokenizer, as llama.cpp reads it."
NO_ROOM = "There is not enough disk space for this upload; free some and try again."
CLOSED_TO_ALL = (
    "Models of this server are added by whoever runs it; paths and hub IDs are disabled."
)
CLOSED = (
    "Paths and hub IDs are disabled, as they are wherever other machines can reach the app. To "
    f"allow them to every visitor, start it with {ALLOW_PATHS}=1."
)


def draw_own_model(context: PageContext) -> None:
    """Forms that open a model which is not in the list; a sentence where it cannot be opened."""
    megabytes = session().upload_megabytes
    with st.expander("Open a model of your own"):
        with st.form("upload", border=False, clear_on_submit=True):
            left, right = st.columns(2)
            files = left.file_uploader(
                f"Model folder, {megabytes:,} MB at most",
                accept_multiple_files="directory",
                key="uploaded_model",
                help=HELP,
                max_upload_size=max(megabytes, 1),
            )
            file = right.file_uploader(
                f"Or a GGUF file, {megabytes:,} MB at most",
                type="gguf",
                key="uploaded_file",
                help=GGUF_HELP,
                max_upload_size=max(megabytes, 1),
            )
            if st.form_submit_button("Open the upload"):
                with st.spinner("Checking the upload"):
                    _open_upload([*files, *([file] if file else [])])
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
    folder, skipped = session().upload_note or (None, "")
    if skipped and context.shelf and folder == context.folder:
        st.text(skipped)


def _open_upload(chosen: Sequence[Upload]) -> None:
    """Keep and open it; in either case nothing of it stays in memory."""
    streams = {each.name: each for each in chosen}
    sizes = {name: stream.size for name, stream in streams.items()}
    most = session().upload_megabytes * limits.MB
    whose = Uploader(network(), owner())
    try:
        _open_folder(lambda: keep_upload(streams, sizes, uploads_root(), whose, _fault_of, most))
    finally:
        for each in chosen:
            RECEIVED.forget(streamlit_patches.session_id(), each.file_id)


def _fault_of(folder: Path) -> str | None:
    return brought_model(folder).fault


def _open_folder(find: Callable[[], KeptUpload]) -> None:
    """Add the folder to this reader's models and open it in the next run."""
    try:
        found = find()
        entry = brought_model(found.folder)
    except (ModelError, OSError) as error:
        say(str(error) if isinstance(error, ModelError) else NO_ROOM)
        return
    if entry.fault:
        say(f"This model cannot be opened: {entry.fault}")
        return
    shelves.add_model(entry.folder)
    session().open_next = entry.folder
    session().upload_note = entry.folder, skipped_files(found.skipped)
    st.rerun()
