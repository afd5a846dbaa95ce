"""The documents' systems on screen: the size of each, and buttons that make or train one."""

import streamlit as st

from explorer.app import reader_models, widget_state
from explorer.app.choosing import draw_page_link, switch_page
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import keep_note, say, take_notes
from explorer.app.session import session
from explorer.catalog import ModelError, descriptions
from explorer.catalog.available_models import brought_model
from explorer.catalog.folders import own_name
from explorer.catalog.open_model import open_entry
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.system.data_folders import systems_root
from explorer.text.labels import cut
from explorer.views.museum import document_systems
from explorer.views.museum.document_systems import SYSTEMS, System
from explorer.views.shared.code_panel import Script, script
from models import Transformer
from models.presets import PRESETS

NO_ROOM_FOR_SYSTEM = "There is not enough disk space for this model; free some and try again."
FOUR = (
    "Four documents, five systems: the web tutorial builds two. The repository's README describes "
    "its model as that of the paper “Attention is all you need”."
)
LONGEST_QUOTED = 60


def draw_systems(context: PageContext) -> Script:
    """A table of all, then the chosen one: to open untrained, or to train; its pasted lines."""
    sizes = {system.preset: document_systems.system_size(system) for system in SYSTEMS}
    st.text(FOUR)
    columns = {
        "system": list(sizes),
        "from": [system.document for system in SYSTEMS],
        "parameters": [f"{count:,}" for count, _ in sizes.values()],
        "size": [f"{size / 1e6:,.1f} MB" for _, size in sizes.values()],
    }
    _draw_table(columns, "The documents' systems and their sizes")
    picked = one_of("system", list(sizes))
    system = next(each for each in SYSTEMS if each.preset == picked)
    count, size = sizes[picked]
    st.markdown(f"{descriptions.config_sentences(system.config)} **{count:,} parameters.**")
    with st.container(horizontal=True):
        _draw_open_button(system, size, context.choice.model, context.choice.text)
        _draw_train_button(system)
    _draw_opened(system, context.choice.model, context.choice.text)
    st.markdown("**Where the documents disagree**")
    rows = [document_systems.choices(each) for each in SYSTEMS]
    settings = {setting: [row[setting] for row in rows] for setting in rows[0]}
    _draw_table({"system": list(sizes), **settings}, "The settings on which the documents disagree")
    st.caption(
        "Where a document is silent, its model here follows the paper. The mask fill can be chosen "
        "in exhibit 9: in every model here a masked key has a weight of exactly 0."
    )
    return script(preset_code, picked)


def _draw_table(columns: dict[str, list[str]], alt: str) -> None:
    st.table(columns, border="horizontal", hide_index=True, alt=alt)


def _draw_open_button(system: System, size: int, model: str, text: str) -> None:
    """A click makes the system, once for all readers, and opens it."""
    root = systems_root()
    if model == document_systems.folder_of(system, root).name:
        st.button("It is open", key="open_system", disabled=True)
        return
    is_made = document_systems.is_made(system, root)
    making = "" if is_made else f" (makes {size / 1e6:,.0f} MB first)"
    if not st.button(f"Open it untrained{making}", key="open_system", type="primary"):
        return
    try:
        _open_system(system, text)
    except (ModelError, OSError) as error:
        say(str(error) if isinstance(error, ModelError) else NO_ROOM_FOR_SYSTEM)
        return
    st.rerun()


def _open_system(system: System, text: str) -> None:
    """Made, opened and run once, so that the next page has it at once."""
    bar = st.progress(0.0, "Making its vocabulary and weights")
    folder = document_systems.make_system(system, systems_root())
    bar.progress(0.5, "Opening the model")
    opened = open_entry(brought_model(folder))
    bar.progress(0.8, "Running your sentence")
    try:
        why = " ".join(run_text(opened, text).notes)
    except ForwardPassError as error:
        why = str(error)
    if why:
        why = f"{why} So your sentence “{cut(text, LONGEST_QUOTED)}” was replaced."
        text = opened.example
    reader_models.add_model(folder)
    session().open_next = folder
    session().choose_next = {"text": text}
    keep_note("system", why, until=(folder.name, text))


def _draw_opened(system: System, model: str, text: str) -> None:
    """That the system is open, what it reads and why, and the pages that show it."""
    if model != document_systems.folder_of(system, systems_root()).name:
        return
    with st.container(border=True, key="system_open"):
        st.text(
            f"{own_name(model)} is open and reads “{cut(text, LONGEST_QUOTED)}”. It is untrained: "
            "its output is random, and its heads attend to all keys almost equally."
        )
        for why in take_notes("system", (model, text)):
            st.text(why)
        for name in ("overview", "forward_pass", "training"):
            draw_page_link(name)


def _draw_train_button(system: System) -> None:
    """To the Training page, with the document's settings and a task that is learned in minutes."""

    def choose_settings() -> None:
        widget_state.put("task", system.task)
        widget_state.put(f"{system.task}_like", system.preset)
        widget_state.put(f"{system.task}_lr", system.lr)

    label = f"Train its shape on the task {system.task}"
    clicked = st.button(label, key="train_system", on_click=choose_settings)
    if clicked and "training" in session().pages:
        switch_page("training", task=system.task)


def preset_code(preset: str) -> None:
    model = Transformer(PRESETS[preset])
    print(model.n_parameters)
