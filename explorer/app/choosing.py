"""Choosing from elsewhere what the bar shows: another model, head or page."""

from collections.abc import Mapping

import streamlit as st

from explorer.app import address, reader_models, streamlit_patches
from explorer.app.address_parameters import AROUND, OF_LESSON
from explorer.app.choice import FRAME, TRAINED
from explorer.app.messages import kept_notes
from explorer.app.session import session
from explorer.catalog.available_models import ModelEntry

OF_FRAME, OF_DISPLAY = "frame", "display options"
"""The keys of the notes on the address that another choice ends."""
HEAD_ALONE = "head_alone"
"""The name of what is drawn again when another head is chosen."""
UNBOUND = ("model", "special")
"""What of it no widget writes into the address by itself."""
STAYS = ("text_file", *OF_LESSON, *AROUND)
"""What every link repeats besides."""


def choose_head(layer: int, head: int, part: str = "") -> None:
    """Choose a layer and a head, and their part; for the callback of a view that was clicked."""
    if part:
        st.session_state["part"] = part
    st.session_state["layer"] = layer
    st.session_state["head"] = head


def draw_head_alone() -> None:
    """For a callback after it chose another head: the rest of the page stays as it is.

    Only where the page can do that, and where no sentence on screen is about the head before.
    """
    now = session().head_alone
    if now is not None and now.drawn_for is not None and not has_notes():
        st.rerun(HEAD_ALONE)


def has_notes() -> bool:
    """Whether something is said that another choice ends."""
    return bool(kept_notes(OF_FRAME) or kept_notes(OF_DISPLAY))


def choose_model(name: str) -> None:
    """Open another model: a typed text is kept, an untouched example is replaced."""
    models = reader_models.openable()  # a model may have been trained since the page was drawn
    before = models.get(session().shown_model or "")
    if name not in models:
        return
    st.session_state["model"] = name
    if before is None or st.session_state.get("text", before.example) in before.examples:
        st.session_state["text"] = models[name].example
    for each in ("part", "layer", "head"):  # the new model's own
        st.session_state[each] = None
    if "training_step" in st.session_state:
        st.session_state["training_step"] = TRAINED
    if "scheme" in st.session_state:
        st.session_state["scheme"] = None  # the Positions page opens with the model's own


def switch_page(name: str, **parameters: str) -> None:
    """To another page at once, with what is chosen once for every page still in the address.

    Streamlit empties the address on the way, and does not write there what was chosen before.
    So it is chosen anew.
    """
    state, reader = st.session_state, session()
    chosen = {name: state[name] for name in FRAME if name in state}
    reader.choose_next = chosen | reader.choose_next
    st.switch_page(reader.pages[name], query_params={**parameters, **carried()})


def draw_page_link(name: str, label: str | None = None, **parameters: str) -> None:
    """A link to another page, by its title if not otherwise; none where a page is run alone.

    `parameters` are what is chosen on that page.
    """
    page = session().pages.get(name)
    if page is not None:
        icon = ":material/arrow_forward:"
        st.page_link(page, label=label, icon=icon, query_params={**carried(), **parameters})


def carried() -> dict[str, str | list[str]]:
    """What a link has to name, since the browser keeps only what the bar shows and is bound."""
    names = [name for name in FRAME if name in UNBOUND or name not in session().bar]
    return {name: _as_asked(name) for name in (*names, *STAYS) if address.is_named(name)}


def _as_asked(name: str) -> str | list[str]:
    values = address.values_of(name)
    return values if len(values) > 1 else address.value_of(name)


def asked_at_first() -> dict[str, str]:
    """What the address of a new reader asks for; nothing later, when the bar shows what is."""
    if session().shown_model is not None:
        return {}
    return {name: address.value_of(name) for name in FRAME if address.is_named(name)}


def settle_model(models: Mapping[str, ModelEntry]) -> ModelEntry:
    """The chosen model, before anything is drawn; the address names it where that has to be said.

    The list shows what a model is called, an address what finds it. So the two are not bound.
    """
    state, asked = st.session_state, address.value_of("model")
    first, default = reader_models.first(models), reader_models.default(models)
    chosen = asked if "model" not in state or streamlit_patches.came_back() else state["model"]
    entry = models.get(chosen) or (default if address.everything() else first)
    if state.get("model") != entry.name:
        state["model"] = entry.name
    # Elsewhere the first may not be there: then the address says which, whatever it is.
    has_name = entry is not default or first is not default
    if has_name and asked != entry.name:
        address.write("model", entry.name)
    elif asked and asked != entry.name:
        address.remove("model")
    return entry


def go_to_next_page() -> None:
    """To the page that was clicked in a picture of the pass, if one was."""
    reader = session()
    page, reader.next_page = reader.next_page, ""
    parameters, reader.next_address = reader.next_address, {}
    if page in reader.pages and page != reader.page:
        switch_page(page, **parameters)


def take_what_was_chosen() -> None:
    """What a page chose for this run, before the widgets that show it are drawn."""
    reader = session()
    folder, reader.open_next = reader.open_next, None
    for entry in reader_models.openable().values() if folder else ():
        if entry.folder == folder:
            choose_model(entry.name)
    st.session_state.update(reader.choose_next)
    reader.choose_next = {}
