"""A model of the reader's own: uploaded, or named by its path or hub id where that is free."""

from __future__ import annotations

import streamlit as st

from explorer.app import shelves
from explorer.app.messages import say
from explorer.app.session import session
from explorer.catalog import entries, places
from explorer.catalog.entries import Entry
from explorer.catalog.places import PlaceError

MEGABYTE = 1_000_000
HELP = (
    "config.json, the weights as safetensors, and the files of its tokenizer. It is kept for a "
    "while under a name that only you are told."
)


def bring() -> None:
    """Ways to open a model that is not on the shelf; what cannot be opened says why."""
    with st.expander("Open a model of your own"):
        with st.form("upload", border=False, clear_on_submit=True):
            files = st.file_uploader(
                f"Upload the folder of a model, {places.LARGEST_UPLOAD // MEGABYTE} MB at most",
                accept_multiple_files="directory",
                max_upload_size=places.LARGEST_UPLOAD // MEGABYTE,
                key="uploaded_model",
                help=HELP,
            )
            if st.form_submit_button("Open the upload") and files is not None:
                _keep(files)
        if places.are_free():
            with st.form("typed", border=False):
                place = st.text_input(
                    "A folder on this machine, or a hub id",
                    key="typed_place",
                    placeholder="~/models/my-bert or openai-community/gpt2",
                )
                if st.form_submit_button("Open it"):
                    _open_typed(place)
        else:
            st.caption(
                "Paths and hub ids are closed; who starts the app opens them with "
                f"{places.FREE}=1, which is for a machine of one's own."
            )


def _keep(files: list) -> None:
    names = {file.name: file for file in files}
    sizes = {name: file.size for name, file in names.items()}
    try:
        with st.spinner("Looking at the upload"):
            folder = places.keep_upload(names, sizes, entries.uploads_root())
    except (PlaceError, OSError) as error:
        say(str(error) if isinstance(error, PlaceError) else NO_ROOM)
        return
    _put_on_shelf(entries.look_at(folder))


NO_ROOM = "There is no room to keep this upload; free some on the disk and try again."


def _open_typed(place: str) -> None:
    try:
        with st.spinner("Looking for the model; one of the hub is fetched first"):
            folder = places.typed(place)
    except PlaceError as error:
        say(str(error))
        return
    _put_on_shelf(entries.look_at(folder))


def _put_on_shelf(entry: Entry) -> None:
    if entry.fault:
        say(f"This model cannot be opened: {entry.fault}")
        return
    shelves.bring(entry.folder)
    session().open_next = entry.folder
    st.rerun()
