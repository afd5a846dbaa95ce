"""What the reader has chosen, once for every page, and kept in the address.

The choices are widgets bound to the query parameters `text`, `pair`, `model`, `part`,
`layer` and `head`: a link or a reload gives the same view, and what an address
asks for that does not exist is said in one sentence and replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from explorer.app import shelves, shorten
from explorer.app import url as asked_for
from explorer.catalog import entries, places
from explorer.catalog.attention_parts import Part, parts
from explorer.catalog.descriptions import in_short
from explorer.catalog.entries import Entry, LibraryError, Opened
from explorer.inference import forward_pass
from explorer.inference.first_look import first_look
from explorer.inference.forward_pass import ForwardPass, ForwardPassError
from explorer.text.literal import literal
from models import TransformerConfig
from models.loading.folder_config import OURS

Made = TypeVar("Made")
TEXT_LIMIT = 2_000
"""The sentence lives in the address, and an address must stay short enough to be sent."""

NO_MODEL = (
    "There is no trained model here yet. Train one on the Train page, or make those that "
    "ship with the app: python -m explorer checkpoints."
)


@dataclass(frozen=True)
class Choice:
    """Everything that is chosen once."""

    text: str
    pair: str
    model: str
    part: str
    layer: int
    head: int


def draw() -> None:
    """The sentence at the top of the page; the model and where to look in the sidebar."""
    top = st.container(key="sentence")
    _choose_what_was_brought()
    shelf = st.session_state["_shelf"] = shelves.look()
    if not shelf:
        return
    is_new = "_drawn_model" not in st.session_state
    asked = st.query_params.to_dict() if is_new else {}  # a widget drops what it cannot show
    before = st.session_state.get("_drawn_model", "")
    with st.sidebar:
        entry = _draw_model(shelf)
        notes = _notes_on_address(asked, shelf, entry)
        if before and before not in shelf:
            notes = [*notes, asked_for.gone(before, entry.name)]
        if is_new:
            notes = [*notes, *map(asked_for.no_model_in, places.empty_places())]
        _draw_look(entry)
    with top:
        _draw_text(entry)
        _draw_notes(notes)
    st.session_state["_drawn_model"] = entry.name


def warm_up() -> None:
    """Read the first example, so that the first visitor finds it read."""
    if shelf := shelves.everybodys():
        _first_look(shelves.first(shelf))


def choice() -> Choice:
    """What is chosen now; the defaults where nothing was drawn, as on a page run alone."""
    shelf, state = shelves.seen(), st.session_state
    if not shelf:
        return Choice("", "", "", "decoder.self_attn", 0, 0)
    entry = shelf.get(state.get("model", ""), shelves.first(shelf))
    part, layer, head = _first_look(entry)
    part = _one_of(state.get("part"), [each.name for each in _parts(entry)], part)
    layer = _one_of(state.get("layer"), range(_part(entry, part).layers), layer)
    head = _one_of(state.get("head"), range(_part(entry, part).heads), head)
    typed = state.get("text", entry.example), state.get("pair") if reads_pairs(entry) else ""
    text, pair = (str(each or "")[:TEXT_LIMIT] for each in typed)
    return Choice(text, pair, entry.name, part, layer, head)


def reads_pairs(entry: Entry) -> bool:
    """Whether its family was made to read one sentence or two."""
    return entry.family != OURS and _config(entry).kind == "encoder"


def opened() -> Opened:
    """The chosen model; where it cannot be opened, the page says why and ends here."""
    try:
        shelf = shelves.seen()
        if not shelf:
            raise LibraryError(NO_MODEL)
        return entries.open_entry(shelf[choice().model])
    except LibraryError as error:
        say(str(error))
        st.stop()


def folder() -> Path:
    """Where the chosen model lies."""
    return shelves.seen()[choice().model].folder


def reading_of_text() -> ForwardPass:
    """The chosen model's reading of the sentence; where there is none, the page says why."""
    model = opened()
    chosen = choice()
    return or_say(lambda: forward_pass.run_text(model, chosen.text, chosen.pair))


def or_say(make: Callable[[], Made]) -> Made:
    """What `make` gives; where it cannot, the page says why and ends here."""
    try:
        return make()
    except ForwardPassError as error:
        say(str(error))
        shorten.offer(error.cut, choice().text, choice().pair)
        st.stop()


def say(sentence: str) -> None:
    """A sentence that may hold the reader's own words, so it is never read as Markdown."""
    with st.container(border=True):
        st.text(sentence)


def look_at(layer: int, head: int) -> None:
    """Choose a layer and a head; for the callback of a view that was clicked."""
    st.session_state["layer"] = layer
    st.session_state["head"] = head


def choose_model(name: str) -> None:
    """Open another model: a typed text is kept, an untouched example is replaced."""
    shelf = shelves.look()  # a model may have been trained since the page was drawn
    before = shelf.get(st.session_state.get("_drawn_model", ""))
    if name not in shelf:
        return
    st.session_state["model"] = name
    if before is None or st.session_state.get("text", before.example) in before.examples:
        st.session_state["text"] = shelf[name].example
    part, layer, head = _first_look(shelf[name])
    st.session_state["part"] = part
    if "scheme" in st.session_state:  # the Positions page opens with the model's own
        st.session_state["scheme"] = _config(shelf[name]).positions
    look_at(layer, head)


def _choose_what_was_brought() -> None:
    """What a page brought or looks at is chosen here, before the widgets that show it are drawn."""
    folder = st.session_state.pop("_open", None)
    for entry in shelves.look().values() if folder else ():
        if entry.folder == folder:
            choose_model(entry.name)
    st.session_state.update(st.session_state.pop("_look_next", {}))


def _draw_model(shelf: dict[str, Entry]) -> Entry:
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
    st.caption(literal(entry.title if entry.title != name else in_short(_config(entry))))
    return entry


def _draw_look(entry: Entry) -> None:
    """Which attention, which layer, which head."""
    first_part, first_layer, first_head = _first_look(entry)
    named = {part.name: part for part in _parts(entry)}
    name = _picker("Attention", "part", list(named), first_part, lambda n: named[n].title)
    layers = range(named[name].layers)
    _picker("Layer", "layer", layers, min(first_layer, layers[-1]))
    _picker("Head", "head", range(named[name].heads), first_head)


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


def _draw_text(entry: Entry) -> None:
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
        st.session_state["_cut"] = asked_for.cut(length, TEXT_LIMIT)


def _draw_notes(notes: list[str]) -> None:
    """What was asked for in vain, until something else is chosen."""
    state = st.session_state
    chosen = [state.get(key) for key in ("text", "pair", "model", "part", "layer", "head")]
    if "_cut" in state:
        notes = [*notes, state.pop("_cut")]
    if notes:
        state["_notes"] = (notes, chosen)
    kept, seen_at = state.get("_notes", ([], chosen))
    if seen_at == chosen:
        for note in kept:
            say(note)
    else:
        del state["_notes"]


def _notes_on_address(asked: dict[str, str], shelf: dict[str, Entry], entry: Entry) -> list[str]:
    damaged = [e for e in shelves.entries() if e.fault] if asked else []
    return [
        *asked_for.text_notes(asked, TEXT_LIMIT),
        *asked_for.model_notes(asked, shelf, damaged, shelves.first(shelf).name),
        *asked_for.look_notes(asked, _parts(entry), _first_look(entry)),
    ]


def _config(entry: Entry) -> TransformerConfig:
    assert entry.config is not None, "only models that can be opened are on the shelf"
    return entry.config


def _parts(entry: Entry) -> tuple[Part, ...]:
    return parts(_config(entry))


def _part(entry: Entry, name: str) -> Part:
    return next(part for part in _parts(entry) if part.name == name)


def _first_look(entry: Entry) -> tuple[str, int, int]:
    try:
        return first_look(entries.open_entry(entry))
    except LibraryError:
        return _parts(entry)[-1].name, 0, 0


def _one_of(value: Any, allowed: Sequence[Any], otherwise: Any) -> Any:
    return value if value in allowed else otherwise
