"""What is chosen once for every page: the sentence at the top, the model and head in the sidebar.

The choices are widgets bound to the query parameters `text`, `pair`, `model`, `part`,
`layer` and `head`: a link or a reload gives the same view, and an invalid value in an
address is replaced, with a sentence that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import streamlit as st

from explorer.app import shelves, url
from explorer.app.context import (
    TEXT_LIMIT,
    Choice,
    config_of,
    first_head,
    make_context,
    parts_of,
    reads_pairs,
)
from explorer.app.messages import say
from explorer.app.session import session
from explorer.catalog import folders
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.descriptions import in_short
from explorer.text.literal import literal


def draw_sidebar() -> None:
    """The sentence at the top of the page, the sidebar, and the context of this run from both."""
    reader = session()
    top = st.container(key="sentence")
    _open_what_was_brought()
    shelf = shelves.openable()
    if not shelf:
        reader.context = make_context(shelf)
        return
    before, is_new = reader.shown_model, reader.shown_model is None
    asked = st.query_params.to_dict() if is_new else {}  # a widget drops what it cannot show
    with st.sidebar:
        entry = _draw_model(shelf)
        notes = _notes_on_address(asked, shelf, entry)
        if before and before not in shelf:
            notes = [*notes, url.gone(before, entry.name)]
        if is_new:
            notes = [*notes, *map(url.no_model_in, folders.places_without_models())]
        _draw_head_choice(entry)
    with top:
        _draw_text(entry)
        _draw_notes(notes)
    reader.shown_model = entry.name
    reader.context = make_context(shelf)


def warm_up() -> None:
    """Open the first model, so that the first visitor finds it open."""
    if shelf := shelves.everybodys():
        first_head(shelves.first(shelf))


def choose_head(layer: int, head: int) -> None:
    """Choose a layer and a head; for the callback of a view that was clicked."""
    st.session_state["layer"] = layer
    st.session_state["head"] = head


def choose_model(name: str) -> None:
    """Open another model: a typed text is kept, an untouched example is replaced."""
    shelf = shelves.openable()  # a model may have been trained since the page was drawn
    before = shelf.get(session().shown_model or "")
    if name not in shelf:
        return
    st.session_state["model"] = name
    if before is None or st.session_state.get("text", before.example) in before.examples:
        st.session_state["text"] = shelf[name].example
    part, layer, head = first_head(shelf[name])
    st.session_state["part"] = part
    if "scheme" in st.session_state:  # the Positions page opens with the model's own
        st.session_state["scheme"] = config_of(shelf[name]).positions
    choose_head(layer, head)


def switch_page(name: str, **address: str) -> None:
    """To another page at once, with what is chosen once for every page still in the address.

    Streamlit empties the address on the way, and does not write there what was chosen before.
    So it is chosen anew.
    """
    state, reader = st.session_state, session()
    chosen = {each.name: state[each.name] for each in fields(Choice) if each.name in state}
    reader.choose_next = chosen | reader.choose_next
    st.switch_page(reader.pages[name], query_params=address)  # None would refuse bound ones


def _open_what_was_brought() -> None:
    """What a page chose for this run, before the widgets that show it are drawn."""
    reader = session()
    folder, reader.open_next = reader.open_next, None
    for entry in shelves.openable().values() if folder else ():
        if entry.folder == folder:
            choose_model(entry.name)
    st.session_state.update(reader.choose_next)
    reader.choose_next = {}


def _draw_model(shelf: dict[str, ModelEntry]) -> ModelEntry:
    names = list(shelf)
    first = shelves.first(shelf)
    if st.session_state.get("model", first.name) not in shelf:
        st.session_state["model"] = first.name
    name = st.selectbox(
        "Model",
        names,
        index=names.index(first.name),
        key="model",
        bind="query-params",
        on_change=lambda: choose_model(st.session_state["model"]),
    )
    entry = shelf[name]  # the address holds the short name
    st.caption(literal(entry.title if entry.title != name else in_short(config_of(entry))))
    return entry


def _draw_head_choice(entry: ModelEntry) -> None:
    """Which attention, which layer, which head."""
    first_part, first_layer, head = first_head(entry)
    named = {part.name: part for part in parts_of(entry)}
    name = _picker("Attention", "part", list(named), first_part, lambda n: named[n].title)
    layers = range(named[name].layers)
    _picker("Layer", "layer", layers, min(first_layer, layers[-1]))
    _picker("Head", "head", range(named[name].heads), head)


def _picker(label: str, key: str, options: Sequence[Any], default: Any, name: Any = str) -> Any:
    if key in st.session_state and st.session_state[key] not in options:
        st.session_state[key] = default
    picked = st.segmented_control(
        label,
        options,
        default=default,
        format_func=name,
        key=key,
        required=True,
        wrap=True,
        bind="query-params",
    )
    return default if picked is None else picked  # an empty value in the address picks nothing


def _draw_text(entry: ModelEntry) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Your sentence",
            value=entry.example,
            key="text",
            on_change=_bound_text,
            placeholder="Type a sentence and press Enter",
            bind="query-params",
        )
        if reads_pairs(entry):
            st.text_input(
                "Second sentence",
                key="pair",
                max_chars=TEXT_LIMIT,
                placeholder="None",
                bind="query-params",
            )
        st.menu_button(
            "Examples",
            list({literal(text): text for text in entry.examples}.values()),
            format_func=literal,  # the words of others are never Markdown
            key="example_text",
            on_click=_take_example,
        )


def _take_example() -> None:
    st.session_state["text"] = st.session_state["example_text"]


def _bound_text() -> None:
    """Cut a text that is too long for the address; the browser alone would ignore it silently."""
    length = len(st.session_state["text"] or "")
    if length > TEXT_LIMIT:
        st.session_state["text"] = st.session_state["text"][:TEXT_LIMIT]
        session().shortened = url.cut(length, TEXT_LIMIT)


def _draw_notes(notes: list[str]) -> None:
    """What was asked for in vain, until something else is chosen."""
    state = st.session_state
    chosen = [state.get(key) for key in ("text", "pair", "model", "part", "layer", "head")]
    reader = session()
    if reader.shortened:
        notes, reader.shortened = [*notes, reader.shortened], ""
    if notes:
        reader.frame_notes = chosen, tuple(notes)
    said_of, sentences = reader.frame_notes or (chosen, ())
    if said_of != chosen:
        reader.frame_notes = None
        return
    for sentence in sentences:
        say(sentence)


def _notes_on_address(
    asked: dict[str, str], shelf: dict[str, ModelEntry], entry: ModelEntry
) -> list[str]:
    damaged = [e for e in shelves.entries() if e.fault] if asked else []
    return [
        *url.text_notes(asked, TEXT_LIMIT),
        *url.model_notes(asked, shelf, damaged, shelves.first(shelf).name),
        *url.look_notes(asked, parts_of(entry), first_head(entry)),
    ]
