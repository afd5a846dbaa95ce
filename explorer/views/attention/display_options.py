"""The display options of the large head: their controls, and their values in the address."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import streamlit as st

from explorer.analysis.adjusted_weights import ALL, SENTENCES, DisplayOptions, keys_in_words
from explorer.analysis.word_groups import group_words
from explorer.app import address
from explorer.app.address import whole_number
from explorer.app.address_parameters import PARAMETERS
from explorer.app.choosing import OF_DISPLAY, choose_head, draw_head_alone
from explorer.app.context import PageContext
from explorer.app.controls import popover, token_names
from explorer.app.messages import draw_notes, keep_note, take_notes
from explorer.app.persistent_choices import PersistentChoices, Text
from explorer.catalog.attention_parts import head_title, map_title

HEADS_DRAWN = {
    "This head": ("one", False),
    "Mean": ("mean", False),
    "Max": ("max", False),
    "Mean of all layers": ("mean", True),
    "Max of all layers": ("max", True),
}
WEIGHTING = {"None": "plain", "Value norm": "value"}
SCALING = {"1": "one", "Matrix": "all", "Row": "row", "Column": "column"}
CHOICES = {
    "heads": tuple(HEADS_DRAWN),
    "weighting": tuple(WEIGHTING),
    "colours": tuple(SCALING),
    "sentences": tuple(SENTENCES),
}
SWITCHES = ("hide_first", "hide_special", "words", "log")
MASS, HIDE = (next(row for row in PARAMETERS if row.name == name) for name in ("mass", "hide"))
DEFAULTS: dict[str, Any] = {
    **{key: options[0] for key, options in CHOICES.items()},
    **dict.fromkeys(SWITCHES, False),
    "hide": [],
    "mass": MASS.usual,
}
TOO_MANY_HIDDEN = f"At most {HIDE.most} keys can be hidden one by one: the others are shown."

SCALES_IN_WORDS = {scale: f"colours per {name.lower()}" for name, scale in SCALING.items()}
KEPT = PersistentChoices("display", DEFAULTS)


def choose_display(context: PageContext) -> DisplayOptions:
    """The button that opens the controls, and a summary of the options; each is in the address."""
    names = _key_names(context)
    chosen, notes = parse_options(KEPT.texts(), names, _two_sentences(context))
    notes += take_notes("hidden keys")
    KEPT.settle(chosen)
    options = _options(context, chosen, names)
    with popover("adjust", ":material/tune:") as panel:
        if panel.open:
            _draw_controls(context, chosen, names)
    if summary := options_summary(options):
        st.caption(summary, width="stretch")
    now = context.choice, options
    if notes:
        keep_note(OF_DISPLAY, *notes, until=now)
    draw_notes(OF_DISPLAY, now)
    return options


def parse_options(
    texts: Mapping[str, Text], names: Sequence[str], paired: bool
) -> tuple[dict[str, Any], list[str]]:
    """The value of every control, the default instead of an invalid one, and notes on these.

    `names` are the names of the keys; the text is `paired` if there is a second sentence.
    """
    values, notes = dict(DEFAULTS), []
    for key, options in CHOICES.items():
        text = texts.get(key, options[0])
        if text not in options:
            either = ", ".join(options[:-1]) + " or " + options[-1]
            notes.append(f"“{key}” can be {either}, not “{text[:20]}”; showing {options[0]}.")
        elif key == "sentences" and text != ALL and not paired:
            notes.append("There is no second sentence, so no pair of sentences to choose from.")
        else:
            values[key] = text
    for key in SWITCHES:
        text = str(texts.get(key, "false"))
        values[key] = text.lower() == "true"
        if text.lower() not in ("true", "false"):
            notes.append(f"“{key}” can be true or false, not “{text[:20]}”; it is off.")
    if "mass" in texts:
        mass = whole_number(texts["mass"], 101)
        if mass is None or mass < MASS.low:
            can = f"“mass” can be {MASS.low:g} to 100 %"
            notes.append(f"{can}, not “{str(texts['mass'])[:20]}”; all keys are shown.")
        else:
            values["mass"] = mass
    hide = texts.get("hide", [])
    hidden = [name for name in hide if name in names]
    missing = [name for name in hide if name and name not in names]
    values["hide"] = hidden[: HIDE.most]
    if missing:
        notes.append(f"This text has no key “{missing[0][:30]}” to hide.")
    if len(hidden) > HIDE.most:
        notes.append(TOO_MANY_HIDDEN)
    return values, notes


def options_summary(options: DisplayOptions) -> str:
    """All that differs from the raw attention weights, in one line; empty if nothing does."""
    whose = "all layers" if options.all_layers else "heads"
    chosen = {
        f"{options.heads} over {whose}": options.heads != "one",
        "× value norm": options.weighting == "value",
        f"{keys_in_words(len(options.hidden))} hidden": bool(options.hidden),
        f"{options.mass} % of the attention mass": options.mass < 100,
        "words merged": options.words,
        options.sentences: options.sentences != ALL,
        SCALES_IN_WORDS[options.scaling]: options.scaling != "one",
        "log colours": options.log,
    }
    return " · ".join(name for name, is_chosen in chosen.items() if is_chosen)


def heads_title(context: PageContext, options: DisplayOptions) -> str:
    """The title of what is drawn."""
    at = context.choice
    if options.heads == "one":
        return head_title(context.called, *at.place)
    return f"{layer_title(context, options)}, {combined_title(context, options)}"


def layer_title(context: PageContext, options: DisplayOptions) -> str:
    """The model, the attention, and the layer or all of them, as a title."""
    at = context.choice
    combined = options.all_layers and context.part.layers > 1
    where = f"All {context.part.layers} layers" if combined else f"Layer {at.layer}"
    return map_title(context.called, at.part, where)


def combined_title(context: PageContext, options: DisplayOptions) -> str:
    """How many heads are combined, and how."""
    layers = context.part.layers if options.all_layers else 1
    return f"{options.heads} of {context.part.heads * layers} heads"


def show_single_head(layer: int, head: int) -> None:
    """For the callback of a view of heads: draw this head by itself."""
    choose_head(layer, head)
    if "heads" in KEPT.texts():
        KEPT.put("heads", DEFAULTS["heads"])
    else:
        draw_head_alone()


def toggle_hidden_keys(context: PageContext, keys: Sequence[int]) -> None:
    """For a callback: hide these keys, or show them again if all of them are hidden.

    A switch that hides one of them is turned off, and its other keys stay hidden by name.
    """
    names, now = _key_names(context), KEPT.texts()
    named = [names.index(name) for name in now.get("hide", []) if name in names]
    switched = {
        switch: places
        for switch, places in _hidden_by_switches(context).items()
        if now.get(switch) == "true"
    }
    if set(keys) <= {*named, *chain(*switched.values())}:
        for switch, places in switched.items():
            if not places.isdisjoint(keys):
                KEPT.put(switch, False)
                named += sorted(places.difference(named))
        named = [place for place in named if place not in keys]
    else:
        named += [key for key in keys if key not in named]
    keep_note("hidden keys", TOO_MANY_HIDDEN if len(named) > HIDE.most else "")
    KEPT.put("hide", [names[place] for place in named[: HIDE.most]])


def _draw_controls(context: PageContext, chosen: dict[str, Any], names: list[str]) -> None:
    _choice("heads", chosen)
    _choice("weighting", chosen)
    _switch("hide_first", chosen)
    _switch("hide_special", chosen)
    st.multiselect(
        options=names,
        default=chosen["hide"],
        placeholder="None",
        max_selections=HIDE.most,
        **_control("hide"),
    )
    st.slider(
        min_value=MASS.low,
        max_value=MASS.high,
        value=chosen["mass"],
        step=MASS.step,
        **_control("mass"),
    )
    is_cut = _has_cut_words(context)
    pieces = "The pieces of a word become one: summed over keys, averaged over queries."
    whole_words = "Every token of this text is a whole word."
    _switch("words", chosen, disabled=not is_cut, help=pieces if is_cut else whole_words)
    if _two_sentences(context):
        _choice("sentences", chosen)
    _choice("colours", chosen)
    _switch("log", chosen)
    st.button("Reset", key="reset_look", on_click=KEPT.reset)


def _choice(key: str, chosen: dict[str, Any]) -> None:
    st.segmented_control(options=CHOICES[key], default=chosen[key], required=True, **_control(key))


def _switch(key: str, chosen: dict[str, Any], **how: Any) -> None:
    st.toggle(value=chosen[key], **_control(key), **how)


def _control(key: str) -> dict[str, Any]:
    """The arguments of a control that keeps its value while the panel is closed."""
    return address.words_of(key) | {"on_change": KEPT.take, "args": (key,)}


def _options(context: PageContext, chosen: dict[str, Any], names: list[str]) -> DisplayOptions:
    places = {name: at for at, name in enumerate(names)}
    hidden = {places[name] for name in chosen["hide"]}
    for switch, keys in _hidden_by_switches(context).items():
        hidden |= keys if chosen[switch] else set()
    heads, all_layers = HEADS_DRAWN[chosen["heads"]]
    return DisplayOptions(
        heads=heads,
        weighting=WEIGHTING[chosen["weighting"]],
        hidden=tuple(sorted(hidden)),
        mass=chosen["mass"],
        words=chosen["words"] and _has_cut_words(context),
        sentences=chosen["sentences"],
        scaling=SCALING[chosen["colours"]],
        log=chosen["log"],
        all_layers=all_layers,
    )


def _key_names(context: PageContext) -> list[str]:
    return token_names(context.forward.columns(context.choice.part))


def _hidden_by_switches(context: PageContext) -> dict[str, set[int]]:
    """The keys that each switch hides."""
    columns = context.forward.columns(context.choice.part)
    special = {place for place, token in enumerate(columns) if token.special}
    return {"hide_first": {0}, "hide_special": special}


def _two_sentences(context: PageContext) -> bool:
    """Whether there is a pair of sentences to choose from."""
    return bool(context.forward.pair) and context.choice.part == "encoder.self_attn"


def _has_cut_words(context: PageContext) -> bool:
    """Whether the tokenizer has split a word, so that there are pieces to merge."""
    forward, part = context.forward, context.choice.part
    sides = (forward.rows(part), forward.columns(part))
    return any(len(group_words(side, forward.text, forward.pair)) < len(side) for side in sides)
