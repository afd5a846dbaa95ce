"""How the large head is to be shown: the controls, and what an address asked for in vain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import streamlit as st

from explorer.analysis.attention_filters import ALL, Look
from explorer.analysis.word_groups import words_of
from explorer.app.context import page_context
from explorer.app.controls import token_names
from explorer.app.folded_choices import Folded
from explorer.app.messages import say
from explorer.app.sidebar import choose_head
from explorer.catalog.attention_parts import Part
from explorer.inference.forward_pass import ForwardPass
from explorer.views.attention.display_settings import (
    CHOICES,
    FULL,
    HEADS,
    LEAST_MASS,
    MASS_STEP,
    MOST_HIDDEN,
    SCALING,
    UNTOUCHED,
    WEIGHTING,
    in_vain,
    sound,
)

ENDS = (
    "1, or the largest value of the picture, of each row or of each column. Numbers stay as they "
    "are. Weights × lengths have no end of their own: there, 1 means the picture."
)
AB = "A is your sentence, B the second one."
COLOURS = {"all": "colours by picture", "row": "colours by row", "column": "colours by column"}
FOLDED = Folded("look", UNTOUCHED)


def choose(forward: ForwardPass, part: str) -> Look:
    """One row over the figures: what is chosen, and the button with every control behind it.

    It stands on the left, so that what opens leaves the large figure in sight. Each
    control is in the address.
    """
    names = token_names(forward.columns(part))
    paired = two_sentences(forward, part)
    asked = FOLDED.texts()
    vain = in_vain(asked, names, paired)
    if "_look_full" in st.session_state:
        vain.append(st.session_state.pop("_look_full"))
    chosen = sound(asked, names, paired)
    FOLDED.settle(chosen)
    look = _look(chosen, forward, part, names)
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.popover("Adjust", icon=":material/tune:", key="adjust", on_change="rerun") as panel:
            if panel.open:
                _controls(chosen, forward, part, names)
        st.caption(summary(look), width="stretch")
    _say(vain, look)
    return look


def _controls(chosen: dict[str, Any], forward: ForwardPass, part: str, names: list[str]) -> None:
    _one("Heads", "heads", chosen)
    _one("Weight", "weighting", chosen)
    _switch("Hide the first token", "hide_first", chosen)
    _switch("Hide special tokens", "hide_special", chosen)
    st.multiselect(
        "Hidden keys",
        names,
        default=chosen["hide"],
        key="hide",
        placeholder="None",
        max_selections=MOST_HIDDEN,
        help="Hidden keys lose their weight, and every row is scaled back to its sum. "
        "A click on the label of a column does the same.",
        on_change=FOLDED.take,
        args=("hide",),
    )
    st.slider(
        "Share of each row that is shown, %",
        LEAST_MASS,
        100,
        chosen["mass"],
        MASS_STEP,
        key="mass",
        help="Of each row the fewest keys that reach this share. 70 is a usual cut.",
        on_change=FOLDED.take,
        args=("mass",),
    )
    cut = has_cut_words(forward, part)
    pieces = "Pieces of a word become one: summed over keys, averaged over queries."
    whole = "Every token here is a whole word already."
    _switch("Whole words", "words", chosen, disabled=not cut, help=pieces if cut else whole)
    if two_sentences(forward, part):
        _one("Sentences", "sentences", chosen, help=AB)
    _one("Colours end at", "colours", chosen, help=ENDS)
    _switch("Colours on a log scale", "log", chosen)
    st.button("Reset", key="reset_look", on_click=FOLDED.reset)


def _look(chosen: dict[str, Any], forward: ForwardPass, part: str, names: list[str]) -> Look:
    places = {name: at for at, name in enumerate(names)}
    hidden = {places[name] for name in chosen["hide"]}
    for switch, keys in _switches(forward, part).items():
        hidden |= keys if chosen[switch] else set()
    of, everywhere = HEADS[chosen["heads"]]
    return Look(
        of,
        WEIGHTING[chosen["weighting"]],
        tuple(sorted(hidden)),
        chosen["mass"],
        chosen["words"] and has_cut_words(forward, part),
        chosen["sentences"],
        SCALING[chosen["colours"]],
        chosen["log"],
        everywhere,
    )


def summary(look: Look) -> str:
    """Everything that is not as the pass left it, in one line."""
    keys = "1 key" if len(look.hidden) == 1 else f"{len(look.hidden)} keys"
    whose = "the heads of all layers" if look.everywhere else "the heads"
    chosen = {
        f"mean of {whose}": look.of == "mean",
        f"largest of {whose}": look.of == "max",
        "weight × length of the value": look.weighting == "value",
        f"{keys} hidden": bool(look.hidden),
        f"{look.mass} % of each row": look.mass < 100,
        "whole words": look.words,
        look.sentences: look.sentences != ALL,
        COLOURS.get(look.scaling, ""): look.scaling != "one",
        "log colours": look.log,
    }
    said = [name for name, is_chosen in chosen.items() if is_chosen]
    return " · ".join(said) or "The head as the pass left it"


def pick(layer: int, head: int) -> None:
    """Show this head, itself; for the callback of a view in which heads are clicked."""
    choose_head(layer, head)
    FOLDED.put("heads", UNTOUCHED["heads"])


def toggle_hidden(forward: ForwardPass, part: str, keys: Sequence[int]) -> None:
    """Hide these keys, or show them again where all of them were hidden; for a callback.

    A switch that hides one of them is turned off, and what else it hid stays hidden by name.
    """
    names, now = token_names(forward.columns(part)), FOLDED.texts()
    named = [names.index(name) for name in now.get("hide", []) if name in names]
    switched = {
        switch: places
        for switch, places in _switches(forward, part).items()
        if now.get(switch) == "true"
    }
    if set(keys) <= {*named, *chain(*switched.values())}:
        for switch, places in switched.items():
            if not places.isdisjoint(keys):
                FOLDED.put(switch, False)
                named += sorted(places.difference(named))
        named = [place for place in named if place not in keys]
    else:
        named += [key for key in keys if key not in named]
    if len(named) > MOST_HIDDEN:
        st.session_state["_look_full"] = FULL
    FOLDED.put("hide", [names[place] for place in named[:MOST_HIDDEN]])


def _switches(forward: ForwardPass, part: str) -> dict[str, set[int]]:
    """The keys that each switch hides."""
    columns = forward.columns(part)
    special = {place for place, token in enumerate(columns) if token.special}
    return {"hide_first": {0}, "hide_special": special}


def two_sentences(forward: ForwardPass, part: str) -> bool:
    """Whether there is a pair to tell apart."""
    return bool(forward.pair) and part == "encoder.self_attn"


def in_words(look: Look, at: Part, layer: int, head: int) -> str:
    """What is on screen, as a heading."""
    if look.of == "head":
        return f"Layer {layer}, head {head}"
    where = f"All {at.layers} layers" if look.everywhere else f"Layer {layer}"
    return f"{where}, {of_how_many(look, at)}"


def of_how_many(look: Look, at: Part) -> str:
    """How heads are combined."""
    return f"{look.of} of {at.heads * (at.layers if look.everywhere else 1)} heads"


def _one(label: str, key: str, chosen: dict[str, Any], **how: Any) -> None:
    st.segmented_control(
        label,
        CHOICES[key],
        default=chosen[key],
        key=key,
        required=True,
        on_change=FOLDED.take,
        args=(key,),
        **how,
    )


def _switch(label: str, key: str, chosen: dict[str, Any], **how: Any) -> None:
    st.toggle(label, value=chosen[key], key=key, on_change=FOLDED.take, args=(key,), **how)


def has_cut_words(forward: ForwardPass, part: str) -> bool:
    """Only where the tokenizer has cut a word is there something to merge."""
    sides = (forward.rows(part), forward.columns(part))
    return any(len(words_of(side, forward.text, forward.pair)) < len(side) for side in sides)


def _say(found: list[str], look: Look) -> None:
    """The address's mistakes, until something else is chosen."""
    state, now = st.session_state, (page_context().choice, look)
    if found:
        state["_look_notes"] = found, now
    notes, seen_at = state.get("_look_notes", ([], now))
    if seen_at != now:
        del state["_look_notes"]
        return
    for note in notes:
        say(note)
