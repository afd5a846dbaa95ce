"""The documents' systems on the screen: how large each is, and clicks that make or train one."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import shelves
from explorer.app.context import page_context
from explorer.app.controls import one_of
from explorer.app.messages import say
from explorer.app.session import session
from explorer.app.sidebar import switch_page
from explorer.catalog import ModelError, available_models, descriptions, folders, opened_model
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.snippets import museum_code as snippets
from explorer.text.labels import cut
from explorer.views.museum import document_systems
from explorer.views.museum.document_systems import SYSTEMS, System

NO_ROOM = "There is no room to keep this model; free some on the disk and try again."
FOUR = (
    "Four documents, five systems: the web tutorial builds two. The repository's README calls its "
    "model as the paper “Attention is all you need” has it."
)
LONGEST_QUOTED = 60


def show() -> Callable[[], str]:
    """A table of all, then the chosen one: opened untrained, or trained in its shape; its lines."""
    sizes = {system.preset: document_systems.size(system) for system in SYSTEMS}
    st.text(FOUR)
    st.table(
        {
            "system": list(sizes),
            "from": [system.document for system in SYSTEMS],
            "parameters": [f"{count:,}" for count, _ in sizes.values()],
            "size": [f"{size / 1e6:,.1f} MB" for _, size in sizes.values()],
        },
        border="horizontal",
        hide_index=True,
        alt="The documents' systems and how large they are",
    )
    picked = one_of("System", "system", list(sizes))
    system = next(each for each in SYSTEMS if each.preset == picked)
    count, size = sizes[picked]
    st.markdown(f"{descriptions.described(system.config)} **{count:,} parameters.**")
    with st.container(horizontal=True):
        _opens(system, size)
        _trains(system)
    _open_now(system)
    _disagreements()
    return lambda: snippets.preset(picked)


def _disagreements() -> None:
    """What each document chose; the fill is exhibit 9, since ours is a real mask."""
    st.markdown("**Where the documents disagree**")
    rows = [document_systems.choices(system) for system in SYSTEMS]
    st.table(
        {
            "system": [system.preset for system in SYSTEMS],
            **{what: [row[what] for row in rows] for what in rows[0]},
        },
        border="horizontal",
        hide_index=True,
        alt="What each document chooses where they do not agree",
    )
    st.caption(
        "Where a document says nothing, its model here does as the paper. The fills are switched "
        "in exhibit 9: where a mask forbids, every model here gives a weight of exactly 0."
    )


def _opens(system: System, size: int) -> None:
    """It is made once, then it is on the shelf of whoever asked for it."""
    root = folders.systems_root()
    name = document_systems.folder_of(system, root).name
    if page_context().choice.model == name:
        st.button("It is open", key="open_system", disabled=True)
        return
    first = (
        "" if document_systems.is_made(system, root) else f", {size / 1e6:,.0f} MB are made first"
    )
    if not st.button(f"Open it untrained{first}", key="open_system", type="primary"):
        return
    try:
        _bring(system, st.progress(0.0, "Its words and weights are made"))
    except OSError:
        say(NO_ROOM)
        return
    except ModelError as error:
        say(str(error))
        return
    st.rerun()


def _bring(system: System, bar: DeltaGenerator) -> None:
    """Made, opened and read, so that the next page has it at once; the bar says what is done."""
    folder = document_systems.make(system, folders.systems_root())
    bar.progress(0.5, "It is opened")
    opened = opened_model.open_entry(available_models.brought_model(folder))
    bar.progress(0.8, "It reads your sentence")
    text = page_context().choice.text
    try:
        why = " ".join(run_text(opened, text).notes)
    except ForwardPassError as error:
        why = str(error)
    if why:
        why = f"{why} So your sentence “{cut(text, LONGEST_QUOTED)}” was changed."
        text = opened.example
    shelves.bring(folder)
    session().open_next = folder
    session().choose_next = {"text": text}
    session().system_reads = folder.name, text, why


def _open_now(system: System) -> None:
    """That it is open, what it reads and why, and where to look at it."""
    at = page_context().choice
    if at.model != document_systems.folder_of(system, folders.systems_root()).name:
        return
    *reads, why = session().system_reads
    with st.container(border=True, key="system_open"):
        st.text(
            f"{at.model} is open and reads “{cut(at.text, LONGEST_QUOTED)}”. It is untrained: "
            "what it answers is noise, and its heads look nearly everywhere alike."
        )
        if why and reads == [at.model, at.text]:
            st.text(why)
        pages = session().pages
        for name in ("overview", "forward_pass", "training"):
            if name in pages:
                st.page_link(pages[name], icon=":material/arrow_forward:")


def _trains(system: System) -> None:
    """The Train page, with the document's choices and a task that learns in minutes."""

    def wish() -> None:
        state = st.session_state
        state["task"] = system.task
        state[f"{system.task}_like"] = system.preset
        state[f"{system.task}_lr"] = system.lr

    pages = session().pages
    clicked = st.button(f"Train one like it: {system.task}", key="train_system", on_click=wish)
    if clicked and "training" in pages:
        switch_page("training", task=system.task)
