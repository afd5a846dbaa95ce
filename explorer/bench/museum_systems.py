"""The documents' systems on the screen: how large each is, and clicks that make or train one."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer import describe, library, session, shelves
from explorer.choices import one_of
from explorer.museum import systems
from explorer.museum.systems import SYSTEMS, System
from explorer.snippets import museum as snippets

NO_ROOM = "There is no room to keep this model; free some on the disk and try again."


def show() -> Callable[[], str]:
    """A table of all, then the chosen one: opened untrained, or trained in its shape; its lines."""
    sizes = {system.preset: systems.size(system) for system in SYSTEMS}
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
    _disagreements()
    picked = one_of("System", "system", list(sizes))
    system = next(each for each in SYSTEMS if each.preset == picked)
    count, size = sizes[picked]
    st.markdown(f"{describe.in_words(system.config)} **{count:,} parameters.**")
    with st.container(horizontal=True):
        _opens(system, size)
        _trains(system)
    return lambda: snippets.preset(picked)


def _disagreements() -> None:
    """What each document chose; the fill is exhibit 9, since ours is a real mask."""
    st.markdown("**Where the documents disagree**")
    rows = [systems.choices(system) for system in SYSTEMS]
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
    made = systems.folder_of(system, library.systems_root()).is_dir()
    first = "" if made else f", {size / 1e6:,.0f} MB are made first"
    if not st.button(f"Open it untrained{first}", key="open_system", type="primary"):
        return
    try:
        with st.spinner("Making the model"):
            folder = systems.make(system, library.systems_root())
    except OSError:
        session.say(NO_ROOM)
        return
    shelves.bring(folder)
    st.session_state["_open"] = folder
    st.rerun()


def _trains(system: System) -> None:
    """The Train page, with the document's choices and a task that learns in minutes."""

    def wish() -> None:
        state = st.session_state
        state["task"] = system.task
        state[f"{system.task}_like"] = system.preset
        state[f"{system.task}_lr"] = system.lr

    pages = st.session_state.get("_pages", {})
    clicked = st.button(f"Train one like it: {system.task}", key="train_system", on_click=wish)
    if clicked and "train" in pages:
        st.switch_page(pages["train"], query_params={"task": system.task})
