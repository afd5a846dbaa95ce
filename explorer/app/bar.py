"""The bar over every page: what is chosen once, for all pages.

The choices are widgets bound to the query parameters `text`, `pair`, `model`, `part`,
`layer` and `head`: a link or a reload gives the same view, and an invalid value in an
address is replaced, with a sentence that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from explorer.app import shelves, url
from explorer.app.choosing import FRAME, choose_model, take_what_was_chosen
from explorer.app.context import config_of, first_head, make_context, parts_of, reads_pairs
from explorer.app.messages import say
from explorer.app.session import session
from explorer.app.url import TEXT_LIMIT
from explorer.catalog import folders
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.descriptions import in_short
from explorer.text.literal import literal

MORE_MODELS = "More models"
IN_THIS_MODEL = "in this model"
MODEL_WIDTH, PART_WIDTH, NUMBER_WIDTH = 160, 112, 72
First = tuple[str, int, int]
"""The part, layer and head of a model that a new reader sees first."""


def draw_bar() -> None:
    """The sentence, the model and one head of it, and the context of this run from them."""
    reader = session()
    take_what_was_chosen()
    shelf = shelves.openable()
    if not shelf:
        reader.context = make_context(shelf)
        return
    before, is_new = reader.shown_model, reader.shown_model is None
    asked = _asked() if is_new else {}  # a widget drops what it cannot show
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall", key="bar"):
        sentence = st.container(
            horizontal=True, vertical_alignment="bottom", gap="xsmall", wrap=False
        )
        model = st.container(
            horizontal=True, vertical_alignment="bottom", gap="xsmall", width="content"
        )
    with model:
        entry = _draw_model(shelf)
    with sentence:
        _draw_text(entry)
    first = first_head(entry)
    notes = _notes_on_address(asked, shelf, entry, first)
    if before and before not in shelf:
        notes = [*notes, url.removed_model(before, entry.name)]
    if is_new:
        notes = [*notes, *map(url.no_model_in, folders.places_without_models())]
    with model:
        _draw_head_choice(entry, first)
    _draw_notes(notes)
    reader.shown_model = entry.name
    reader.context = make_context(shelf, first)
    reader.sidebar_head = st.sidebar.container()


def warm_up() -> None:
    """Open the first model, so that the first visitor finds it open."""
    if shelf := shelves.everybodys():
        for entry in (shelves.first(shelf), shelves.default(shelf)):
            first_head(entry)


def _draw_model(shelf: dict[str, ModelEntry]) -> ModelEntry:
    names = list(shelf)
    first, default = shelves.first(shelf), shelves.default(shelf)
    if st.session_state.get("model", default.name) not in shelf:
        st.session_state["model"] = default.name
    unnamed = names.index(default.name)
    if first is not default:  # on another machine it may not be there, so the address says which
        _name_in_address(shelf, default if url.everything() else first)
        unnamed = len(names)
    shown = shelf.get(url.current_value("model"), default)
    title = shown.title if shown.title != shown.name else in_short(config_of(shown))
    name = st.selectbox(
        "Model",
        [*names, MORE_MODELS],
        index=unnamed,
        help=literal(title),
        **url.bound("model"),
        on_change=_take_model,
        width=MODEL_WIDTH,
    )
    return shelf[name]


def _take_model() -> None:
    """Another model was picked, or the page where more of them are."""
    picked, reader = st.session_state["model"], session()
    if picked == MORE_MODELS:
        st.session_state["model"] = reader.shown_model
        reader.door = "checkpoints"
    else:
        choose_model(picked)


def _name_in_address(shelf: dict[str, ModelEntry], entry: ModelEntry) -> None:
    """Show this model in a new session, unless its address asks for one that is there."""
    if "model" not in st.session_state and url.asked("model") not in shelf:
        st.session_state["model"] = entry.name
        url.write("model", entry.name)


def _draw_head_choice(entry: ModelEntry, first: First) -> None:
    """Which attention, which layer, which head."""
    first_part, first_layer, head = first
    named = {part.name: part for part in parts_of(entry)}
    titles = {name: part.title for name, part in named.items()}
    name = _picker("Attention", "part", list(named), first_part, PART_WIDTH, titles.__getitem__)
    layers = range(named[name].layers)
    _picker("Layer", "layer", layers, min(first_layer, layers[-1]), NUMBER_WIDTH)
    _picker("Head", "head", range(named[name].heads), head, NUMBER_WIDTH)


def _picker(
    label: str, key: str, options: Sequence[Any], default: Any, width: int, name: Any = str
) -> Any:
    state, asked = st.session_state, url.asked(key)
    meant = [each for each in options if name(each) == asked]
    if key not in state and meant:
        state[key] = meant[0]
    elif key in state and state[key] not in options:
        state[key] = default
    picked = st.selectbox(
        label,
        options,
        index=options.index(default),
        format_func=name,
        width=width,
        **url.bound(key),
    )
    return default if picked is None else picked  # an empty value in the address picks nothing


def _draw_text(entry: ModelEntry) -> None:
    st.text_input(
        "Your sentence",
        value=entry.example,
        on_change=_bound_text,
        placeholder="Type a sentence and press Enter",
        **url.bound("text"),
    )
    if reads_pairs(entry):
        st.text_input(
            "Second sentence",
            max_chars=TEXT_LIMIT,
            placeholder="None",
            **url.bound("pair"),
        )
    if entry.examples:  # a folder of somebody else may bring none
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
        session().shortened = url.shortened(length, TEXT_LIMIT)


def _draw_notes(notes: list[str]) -> None:
    """What the address asked for and does not exist, until something else is chosen."""
    state, reader = st.session_state, session()
    chosen = [state.get(key) for key in FRAME]
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


def _asked() -> dict[str, str]:
    return {name: url.asked(name) for name in FRAME if url.is_asked(name)}


def _notes_on_address(
    asked: dict[str, str], shelf: dict[str, ModelEntry], entry: ModelEntry, first: First
) -> list[str]:
    """A message for each value of the address that does not exist; none where nothing is asked."""
    notes = []
    name = asked.get("model")
    for whose, key in (("The text", "text"), ("The second sentence", "pair")):
        if key in asked and (length := url.length_asked(key)) > TEXT_LIMIT:
            notes.append(url.shortened(length, TEXT_LIMIT, f"{whose} in the address"))
    if name is not None and name not in shelf:
        faults = {each.name: each.fault for each in shelves.entries()}
        notes.append(url.invalid_model(name, shelves.default(shelf).name, faults.get(name)))
    first_part, layer, head = first
    named = {part.title: part for part in parts_of(entry)}
    part = next(each for each in named.values() if each.name == first_part)
    if (title := asked.get("part", part.title)) not in named:
        notes.append(url.invalid_option("Attention", title, part.title, IN_THIS_MODEL))
    part = named.get(title, part)
    for label, count, shown in (
        ("Layer", part.layers, min(layer, part.layers - 1)),
        ("Head", part.heads, head),
    ):
        number = asked.get(label.lower())
        if number is not None and number not in map(str, range(count)):
            notes.append(url.invalid_option(label, number, shown, IN_THIS_MODEL))
    return notes
