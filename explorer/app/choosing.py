"""Choosing another model, head or page from outside the bar."""

from collections.abc import Mapping

import streamlit as st

from explorer.app import address, reader_models, streamlit_patches
from explorer.app.address_parameters import AROUND, OF_LESSON
from explorer.app.choice import FRAME, TRAINED
from explorer.app.messages import keep_note, kept_notes
from explorer.app.session import redraw, session
from explorer.catalog.available_models import ModelEntry

OF_FRAME, OF_DISPLAY = "frame", "display options"
"""The keys of the notes on the address that another choice ends."""
ARRIVAL = "arrival"
"""The key of the note that a page has chosen another model, which its opening shows."""
HEAD_ALONE = "head_alone"
"""The fragment that is drawn again when another head is chosen."""
UNBOUND = ("model", "special")
"""Choices of the frame that no widget writes into the address."""
STAYS = ("text_file", "edits", *OF_LESSON, *AROUND)
"""Other parameters that every link repeats."""


def choose_head(layer: int, head: int, part: str = "") -> None:
    """Choose a layer and a head, and their part; for the callback of a view that was clicked."""
    if part:
        st.session_state["part"] = part
    st.session_state["layer"] = layer
    st.session_state["head"] = head


def draw_head_alone() -> None:
    """For a callback that has chosen another head: draw again only what follows the head.

    Only where the page can do that, and no note on screen is about the head before.
    """
    now = session().head_alone
    if now is not None and now.drawn_for is not None and not has_notes():
        st.rerun(HEAD_ALONE)


def has_notes() -> bool:
    """Whether a note is on screen that another choice ends."""
    return bool(kept_notes(OF_FRAME) or kept_notes(OF_DISPLAY))


def choose_model(name: str) -> None:
    """Open another model. A typed text stays; the example of the model before is replaced."""
    models = reader_models.openable()  # a model may have been trained since the page was drawn
    before = models.get(session().shown_model or "")
    if name not in models:
        return
    st.session_state["model"] = name
    if before is None or st.session_state.get("text", before.example) in before.examples:
        st.session_state["text"] = models[name].example
    for key in ("part", "layer", "head"):  # the new model's own
        st.session_state[key] = None
    if "training_step" in st.session_state:
        st.session_state["training_step"] = TRAINED
    if "scheme" in st.session_state:
        st.session_state["scheme"] = None  # the Positions page opens with the model's own


def show_on_arrival(entry: ModelEntry, before: str) -> None:
    """Open this model when the reader comes to a page that can show nothing of the model they have.

    A model that the address names stays. `before` is the title of the reader's.
    """
    reader = session()
    if reader.has_arrived and not address.is_named("model"):
        why = f"Shown for {entry.title}, not for {before}."
        keep_note(ARRIVAL, why, until=(reader.page, entry.name))
        reader.open_next = entry.folder
        redraw()


def switch_page(name: str, **parameters: str) -> None:
    """Go to another page now, with the choices of the frame still in the address.

    Streamlit empties the address on the way and does not write earlier choices there, so they
    are chosen again.
    """
    state, reader = st.session_state, session()
    chosen = {name: state[name] for name in FRAME if name in state}
    reader.choose_next = chosen | reader.choose_next
    st.switch_page(reader.pages[name], query_params={**parameters, **carried()})


def draw_page_link(name: str, label: str | None = None, **parameters: str) -> None:
    """Draw a link to another page, which says its title if it has no label.

    `parameters` are chosen on that page. A page that is run alone has no links.
    """
    page = session().pages.get(name)
    if page is not None:
        icon = ":material/arrow_forward:"
        st.page_link(page, label=label, icon=icon, query_params={**carried(), **parameters})


def carried() -> dict[str, list[str]]:
    """Parameters that every link must name: the browser keeps only the bar's bound."""
    bar, named = session().bar, address.names()
    names = [name for name in FRAME if name in UNBOUND or name not in bar]
    return {name: address.values_of(name) for name in (*names, *STAYS) if name in named}


def initial_values() -> dict[str, str]:
    """The values that the address of a new reader names; none later, when the bar shows them."""
    if session().shown_model is not None:
        return {}
    return {name: address.value_of(name) for name in FRAME if address.is_named(name)}


def settle_model(models: Mapping[str, ModelEntry]) -> ModelEntry:
    """Settle the chosen model before anything is drawn; write it into the address if needed.

    The list shows a label, the address a unique name, so the two are not bound.
    """
    state, requested = st.session_state, address.value_of("model")
    first, default = reader_models.first(models), reader_models.default(models)
    chosen = requested if "model" not in state or streamlit_patches.came_back() else state["model"]
    entry = models.get(chosen) or (default if address.everything() else first)
    if state.get("model") != entry.name:
        state["model"] = entry.name
    # Another machine may not have the first model, so the address names it.
    has_name = entry is not default or first is not default
    if has_name and requested != entry.name:
        address.write("model", entry.name)
    elif requested and requested != entry.name:
        address.remove("model")
    return entry


def go_to_next_page() -> None:
    """Go to the page that was clicked in a picture of the pass, if one was."""
    reader = session()
    page, reader.next_page = reader.next_page, ""
    parameters, reader.next_address = reader.next_address, {}
    if page == reader.page:
        st.session_state.update(parameters)
    elif page in reader.pages:
        switch_page(page, **parameters)


def apply_pending_choices() -> None:
    """Choose what a page left for this run, before the widgets that show it are drawn."""
    reader = session()
    folder, reader.open_next = reader.open_next, None
    for entry in reader_models.openable().values() if folder else ():
        if entry.folder == folder:
            choose_model(entry.name)
    st.session_state.update(reader.choose_next)
    reader.choose_next = {}
