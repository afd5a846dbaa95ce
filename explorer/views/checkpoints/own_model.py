"""A model of the reader's own: uploaded, or named by a path or hub ID where that is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from explorer.app import shelves
from explorer.app.messages import say
from explorer.app.session import session
from explorer.catalog import ModelError
from explorer.catalog.available_models import brought_model
from explorer.catalog.folders import ALLOW_PATHS, find_model, paths_allowed, uploads_root
from explorer.catalog.uploads import LARGEST_UPLOAD, keep_upload

MEGABYTE = 1_000_000
HELP = (
    "config.json, the weights as safetensors, and the tokenizer's files. The model is kept for a "
    "while, under a name that only you know."
)
NO_ROOM = "There is not enough disk space for this upload; free some and try again."


def draw_own_model() -> None:
    """Forms that open a model which is not in the list; a sentence where it cannot be opened."""
    with st.expander("Open a model of your own"):
        with st.form("upload", border=False, clear_on_submit=True):
            files = st.file_uploader(
                f"Model folder, {LARGEST_UPLOAD // MEGABYTE} MB at most",
                accept_multiple_files="directory",
                max_upload_size=LARGEST_UPLOAD // MEGABYTE,
                key="uploaded_model",
                help=HELP,
            )
            if st.form_submit_button("Open the upload") and files is not None:
                streams = {file.name: file for file in files}
                sizes = {name: file.size for name, file in streams.items()}
                with st.spinner("Checking the upload"):
                    _open_folder(lambda: keep_upload(streams, sizes, uploads_root()))
        if paths_allowed():
            with st.form("typed", border=False):
                place = st.text_input(
                    "Folder on this machine, or hub ID",
                    key="typed_place",
                    placeholder="~/models/my-bert or openai-community/gpt2",
                )
                if st.form_submit_button("Open it"):
                    with st.spinner("Finding the model; one from the hub is downloaded first"):
                        _open_folder(lambda: find_model(place))
        else:
            st.caption(
                "Paths and hub IDs are disabled. To allow them on your own machine, start the app "
                f"with {ALLOW_PATHS}=1."
            )


def _open_folder(find: Callable[[], Path]) -> None:
    """Add the folder to this reader's models and open it in the next run."""
    try:
        entry = brought_model(find())
    except (ModelError, OSError) as error:
        say(str(error) if isinstance(error, ModelError) else NO_ROOM)
        return
    if entry.fault:
        say(f"This model cannot be opened: {entry.fault}")
        return
    shelves.add_model(entry.folder)
    session().open_next = entry.folder
    st.rerun()
