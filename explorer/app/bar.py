"""The bar at the top of every page: the controls chosen once for all pages that this page uses.

The choices are widgets bound to the query parameters `text`, `pair`, `part`, `layer`, `head` and
`training_step`; `model` is read and written by `choosing`. A link or a reload gives the same view,
and an invalid value in an address is replaced, with a sentence that says so.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import address, reader_models, streamlit_patches
from explorer.app.address_parameters import TEXT_LIMIT
from explorer.app.choice import FRAME, TRAINED, snapshots_of, step_names
from explorer.app.choosing import OF_FRAME, choose_model
from explorer.app.context import (
    CurrentContext,
    PageContext,
    config_of,
    make_context,
    parts_of,
    reads_pairs,
    settle,
)
from explorer.app.messages import draw_notes, keep_note, take_notes
from explorer.app.session import HeadAlone, session, state_of
from explorer.app.suggest_model import draw_special, draw_unknown
from explorer.app.typed_text import SENTENCE
from explorer.catalog import folders
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.folders import own_name
from explorer.catalog.model_descriptions import in_short
from explorer.text.visible_text import cut, literal

MORE_MODELS = "More models"
IN_THIS_MODEL = "in this model"
LONGEST_PINNED = 20
STEP_KEY = "training_step"
MOST_OF_HELP = 400
MODEL_WIDTH, PART_WIDTH, NUMBER_WIDTH, STEP_WIDTH = 176, 112, 72, 88


def draw_bar(
    models: Mapping[str, ModelEntry], entry: ModelEntry, initial: Mapping[str, str]
) -> None:
    """Draw the sentence, the model and the head that the page uses; make the context of this run.

    The other choices stay, also in the address, for other pages. `initial` holds the values that
    the address of a new reader names.
    """
    reader = session()
    before, is_new, uses = reader.shown_model, reader.shown_model is None, reader.bar
    place = st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall", key="bar")
    if "text" in uses:
        with _group(place, width="stretch"):
            _draw_text(entry)
    if "text" in uses and reads_pairs(entry) and "pair" in reader.bar:  # each has its whole width
        st.text_input(max_chars=TEXT_LIMIT, placeholder="None", **address.bound("pair"))
    draws_model = "model" in reader.uses
    if draws_model:
        with place:
            st.checkbox("More", key="bar_more")  # on a phone, where a “?” in a label would tick it
    group = _group(place, width="content", key="bar_choices") if draws_model else place
    if draws_model:
        with group:
            if "model" in uses:
                labels = {**reader_models.titles(models), MORE_MODELS: MORE_MODELS}
                st.selectbox(
                    options=list(labels),
                    format_func=labels.__getitem__,
                    persist_state="session",
                    on_change=_take_model,
                    width=MODEL_WIDTH,
                    **address.words_of("model") | {"help": literal(_about(entry))},
                )
            _draw_step(entry)
    for name in FRAME:
        if name not in uses:
            _keep(name)
    context = state_of(CurrentContext).context = make_context(models)
    notes = _notes_on_address(initial, context, entry)
    if before and before not in models:
        gone = f"The model {own_name(before)[:60]} no longer exists; showing {entry.title}."
        notes = [*notes, gone]
    if is_new:
        notes = [*notes, *map(address.no_model_in, folders.places_without_models())]
    with group:
        lists = _draw_head_choice(context, entry)
    reader.head_alone = HeadAlone(models, lists) if lists else None
    _draw_notes([*notes, *take_notes(SENTENCE)])
    for name in ("text", "pair"):
        if name in reader.hidden and name not in uses:
            usual = entry.example if name == "text" else ""
            text = st.session_state.get(name, usual)  # a button of a page may have changed it
            if text and text != usual and len(text) <= TEXT_LIMIT:
                address.write(name, text)
            elif text == usual:
                address.remove(name)
    reader.shown_model = entry.name
    if {"text", "model"} <= {*reader.uses}:
        draw_unknown(context)
        draw_special(context)


def _group(place: DeltaGenerator, width: Any, key: str | None = None) -> DeltaGenerator:
    """A container whose controls stay in one row."""
    return place.container(
        horizontal=True, wrap=False, vertical_alignment="bottom", gap="xsmall", width=width, key=key
    )


def _about(entry: ModelEntry) -> str:
    """Its title, kind and size, and what it is good to look at."""
    kind = f"{in_short(config_of(entry))}, {entry.parameters:,} parameters"
    why = cut(str(entry.run.get("explanation", "")), MOST_OF_HELP)
    return f"{entry.title}: {kind}. {why}".strip()


def _draw_step(entry: ModelEntry) -> None:
    """A list of the training steps of which the model has a snapshot, if it has any."""
    names = step_names(entry, snapshots_of(entry))
    settle(STEP_KEY, names, TRAINED)
    if len(names) > 1:
        _draw_list(STEP_KEY, list(names), TRAINED, STEP_WIDTH, names.__getitem__)
    else:
        _keep(STEP_KEY)
        address.remove(STEP_KEY)


def _take_model() -> None:
    """The reader has picked another model, or the page with more of them."""
    picked, reader = st.session_state["model"], session()
    if picked == MORE_MODELS:
        st.session_state["model"] = reader.shown_model
        reader.next_page, reader.next_address = "checkpoints", {"show": reader_models.ALL_MODELS}
    else:
        choose_model(picked)


def _draw_head_choice(context: PageContext, entry: ModelEntry) -> Callable[[], None] | None:
    """Draw the lists of the attention, the layer and the head.

    Where the page draws again only what follows the head, this returns a function that draws the
    lists of the layer and the head.
    """
    first_part, first_layer, head = context.default_head
    parts = {part.name: part for part in parts_of(entry)}
    titles = {name: part.title for name, part in parts.items()}
    part = parts[context.choice.part]
    layers, heads = range(part.layers), range(part.heads)
    _draw_list("part", list(parts), first_part, PART_WIDTH, titles.__getitem__)

    def draw_numbers() -> None:
        _draw_list("layer", layers, min(first_layer, layers[-1]), NUMBER_WIDTH)
        _draw_list("head", heads, head, NUMBER_WIDTH)

    if not session().draws_head_alone:
        draw_numbers()
        return None
    place = _group(st.container(width="content"), width="content")

    def draw_from_the_page() -> None:
        with place, streamlit_patches.as_part_of_the_frame():
            draw_numbers()

    return draw_from_the_page


def _draw_list(
    key: str, options: Sequence[Any], default: Any, width: int, name: Callable[[Any], str] = str
) -> None:
    """Draw a list of options if the page uses it."""
    if key in session().bar:
        index = options.index(default)
        bound = address.bound(key)
        st.selectbox(options=options, index=index, format_func=name, width=width, **bound)
    elif key in session().hidden:  # no widget writes what a click chooses
        chosen = st.session_state.get(key, default)
        streamlit_patches.keep_in_address(key)
        if chosen == default:
            address.remove(key)
        else:
            address.write(key, name(chosen))


def _keep(name: str) -> None:
    """Keep a choice that this page does not show; for a new reader, read it from the address."""
    if name in ("text", "pair") and name not in st.session_state and address.is_named(name):
        st.session_state[name] = address.value_of(name)[:TEXT_LIMIT]
    streamlit_patches.keep_in_address(name)


def _draw_text(entry: ModelEntry) -> None:
    bound = address.bound("text")
    st.text_input(
        value=entry.example,
        placeholder="Type a sentence and press Enter",
        **(address.words_of("text") if session().has_long_text else bound),
    )
    if entry.examples:  # a reader's own folder may have none
        st.menu_button(
            "Examples",
            list({literal(text): text for text in entry.examples}.values()),
            format_func=literal,  # the words of others are never Markdown
            key="example_text",
            on_click=_take_example,
            args=(entry,),
        )


def _take_example(entry: ModelEntry) -> None:
    """Take the chosen text, and pin the cell that the model's record names for it."""
    text = st.session_state["text"] = st.session_state["example_text"]
    cells = entry.run.get("pinned")
    if isinstance(cells, dict) and isinstance(cells.get(text), str):
        session().persistent["pinned"] = {"pinned": cells[text][:LONGEST_PINNED]}


def _draw_notes(notes: list[str]) -> None:
    """Show the messages about invalid values until the reader chooses something else."""
    chosen = [st.session_state.get(key) for key in FRAME]
    if notes:
        keep_note(OF_FRAME, *notes, until=chosen)
    draw_notes(OF_FRAME, chosen)


def _notes_on_address(
    initial: Mapping[str, str], context: PageContext, entry: ModelEntry
) -> list[str]:
    """A message for each invalid value in the address of a new reader."""
    notes = []
    name, models = initial.get("model"), context.models
    if "pair" in initial and (length := address.length_of("pair")) > TEXT_LIMIT:
        notes.append(address.shortened(length, TEXT_LIMIT, "The second sentence in the address"))
    if name is not None and name not in models:
        faults = {model.name: model.fault for model in reader_models.entries()}
        notes.append(
            address.invalid_model(name, reader_models.default(models).name, faults.get(name))
        )
    if STEP_KEY in initial:
        names = step_names(entry, snapshots_of(entry))
        if (step := initial[STEP_KEY]) not in names.values():
            trained = names[TRAINED] or "the trained model"
            notes.append(address.invalid_option("Step", step, trained, "in its training"))
    first_part, layer, head = context.default_head
    parts = {part.title: part for part in parts_of(entry)}
    part = next(part for part in parts.values() if part.name == first_part)
    if (title := initial.get("part", part.title)) not in parts:
        notes.append(address.invalid_option("Attention", title, part.title, IN_THIS_MODEL))
    part = parts.get(title, part)
    for label, count, default in (
        ("Layer", part.layers, min(layer, part.layers - 1)),
        ("Head", part.heads, head),
    ):
        number = initial.get(label.lower())
        if number is not None and number not in map(str, range(count)):
            notes.append(address.invalid_option(label, number, default, IN_THIS_MODEL))
    return notes
