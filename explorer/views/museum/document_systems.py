"""The documents' systems: their sizes, and buttons that open one untrained or train it."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import reader_models, widget_state
from explorer.app.choosing import draw_page_link, switch_page
from explorer.app.context import PageContext
from explorer.app.controls import one_of
from explorer.app.messages import keep_note, say, take_notes
from explorer.app.session import redraw, session
from explorer.catalog import ModelError, model_descriptions
from explorer.catalog.available_models import brought_model
from explorer.catalog.opened_model import open_entry
from explorer.catalog.parameters import count_parameters
from explorer.catalog.pass_budget import SteppingOperations
from explorer.charts.bars import block_bars
from explorer.charts.figure_data import WINDOW
from explorer.components.chart import chart
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.runs.quotas import BYTES_OF_PARAMETER
from explorer.system.data_folders import systems_root
from explorer.text import Tokenizer, word_tokenizer
from explorer.text.number_format import megabytes
from explorer.text.token import CLASSIFIER, SOURCE
from explorer.text.visible_text import cut
from explorer.views.shared import tables
from explorer.views.shared.code_panel import Script, script
from models import GenerationConfig, Transformer, TransformerConfig, save_checkpoint
from models.presets import PRESETS

LONGEST_QUOTED = 60
LEARNING_RATE = 1e-3
WORDS = (
    "the a black white cat dog sleeps eats does not le la un une chat chien noir dort mange ne pas "
    "Dog is crossing street because it saw kitchen I am student you are we were was food film "
    "hotel very good bad really pleasant boring never awful great place service"
).split()
FEW_WORDS = "I am a student street kitchen dog".split()
"""The notebook has eleven tokens, four of them special."""


@dataclass(frozen=True)
class System:
    """One document's model, a sentence for it, and a task that its shape learns in minutes.

    `mask_fill` is the score that the document gives to masked keys, `projections` says how its
    heads get queries, keys and values.
    """

    preset: str
    document: str
    mask_fill: str
    task: str
    sentence: str
    projections: str = "per head"

    @cached_property
    def config(self) -> TransformerConfig:
        """The document's config; the IDs of special tokens are those of `tokenizer_for`."""
        words = tokenizer_for(self.preset)
        return PRESETS[self.preset].replace(
            pad_id=words.pad_id,
            bos_id=words.bos_id,
            generation=GenerationConfig.ending_with(words.eos_id),
        )


CAT = "the black cat sleeps"
DOG = "Dog is crossing the street because it saw the kitchen"
FOOD = "the food was not very good"
SHARED = "shared as written, per head here"
"""The notebook applies one projection to the slices of all heads (exhibit 5)."""
SYSTEMS = (
    System("lecture handout", "lecture handout", "−1e9", "reverse", CAT),
    System("notebook tutorial", "notebook tutorial", "−1e20", "copy", "I am a student", SHARED),
    System("web tutorial, encoder", "web tutorial", "−∞", "negation", DOG),
    System("web tutorial, classifier", "web tutorial", "−∞", "negation", FOOD),
    System("repository README", "repository README", "−∞", "translation", CAT),
)


def choices(system: System) -> dict[str, str]:
    """The settings on which the documents disagree, as the model here has them."""
    config = system.config
    last = ", and a final one" if config.final_norm else ""
    bias = "with bias" if config.qkv_bias else "without bias"
    return {
        "embedding × √d_model": "yes" if config.scale_embedding else "no",
        "mask fill, as written": system.mask_fill,
        "norm": config.norm_position + last,
        "dropout": f"{config.dropout:g}",
        "Q, K, V": f"{bias}, {system.projections}",
        "longest input": f"{config.max_len:,}",
    }


def tokenizer_for(preset: str) -> Tokenizer:
    """A tokenizer with as many tokens as the preset; most of its words are t100, t101, …"""
    config = PRESETS[preset]
    reads = SOURCE if config.kind == "encoder-decoder" else CLASSIFIER
    words = FEW_WORDS if config.vocab_size < len(WORDS) else sorted(set(WORDS))
    specials = len(word_tokenizer([], reads).special_ids) + 1
    missing = config.vocab_size - specials - len(words)
    return word_tokenizer([*words, *(f"t{number}" for number in range(missing))], reads)


def folder_of(system: System, root: Path) -> Path:
    """Its folder, which all readers share; it may not exist yet."""
    return root / re.sub("[^a-z]+", "-", system.preset.lower())


def is_saved(system: System, root: Path) -> bool:
    """Whether its folder exists, with the config that this version of the app would write."""
    config = folder_of(system, root) / "config.json"
    return config.is_file() and config.read_text() == system.config.to_json()


def make_system(system: System, root: Path) -> Path:
    """Save the untrained model, with weights from seed 0, once for all readers; not as an upload.

    OSError if there is no room.
    """
    folder = folder_of(system, root)
    if not is_saved(system, root):
        title = f"{system.preset}, untrained"
        run = {"title": title, "example": system.sentence, "untrained": True}
        words = tokenizer_for(system.preset).to_json()
        with SteppingOperations():
            save_checkpoint(folder, Transformer(system.config), tokenizer=words, run=run)
    return folder


def draw_systems(context: PageContext, row: DeltaGenerator) -> Script:
    """Draw the sizes of all, then buttons that open or train the chosen one; return the code.

    The choice stands in the `row`.
    """
    sizes = {system.preset: count_parameters(system.config) for system in SYSTEMS}
    with row:
        preset = one_of("system", list(sizes), as_list=True, width=300)
    spec = block_bars([*sizes], [*sizes.values()], "parameters")
    title = "The documents' systems and their parameters"
    chart(spec, height=WINDOW, key="museum_systems", title=title)
    st.text(
        "Four documents, five systems: the web tutorial builds two. The repository's README "
        "describes its model as that of the paper “Attention is all you need”."
    )
    columns = {
        "system": list(sizes),
        "from": [system.document for system in SYSTEMS],
        "parameters": [f"{count:,}" for count in sizes.values()],
        "size": [megabytes(BYTES_OF_PARAMETER * count) for count in sizes.values()],
    }
    tables.static_table(columns, "The documents' systems and their sizes")
    system = next(system for system in SYSTEMS if system.preset == preset)
    count, model, text = sizes[preset], context.choice.model, context.choice.text
    st.markdown(f"{model_descriptions.config_sentences(system.config)} **{count:,} parameters.**")
    with st.container(horizontal=True):
        _draw_open_button(system, BYTES_OF_PARAMETER * count, model, text)
        _draw_train_button(system)
    if model == folder_of(system, systems_root()).name:
        with st.container(border=True, key="system_open"):
            st.text(
                f"{context.entry.title} is open and reads “{cut(text, LONGEST_QUOTED)}”. It is "
                "untrained: its output is random, and its heads attend to all keys almost equally."
            )
            for why in take_notes("system", (model, text)):
                st.text(why)
            for name in ("overview", "forward_pass", "training"):
                draw_page_link(name)
    st.markdown("**Where the documents disagree**")
    rows = [*map(choices, SYSTEMS)]
    settings = {setting: [row[setting] for row in rows] for setting in rows[0]}
    tables.static_table(
        {"system": list(sizes), **settings}, "The settings on which the documents disagree"
    )
    st.caption(
        "Where a document is silent, its model here follows the paper. The mask fill can be chosen "
        "in exhibit 9: in every model here a masked key has a weight of exactly 0."
    )
    return script(preset_code, preset)


def _draw_open_button(system: System, size: int, model: str, text: str) -> None:
    """Draw a button that opens the system, and saves it first if no reader did."""
    root = systems_root()
    if model == folder_of(system, root).name:
        st.button("It is open", key="open_system", disabled=True)
        return
    size_note = "" if is_saved(system, root) else f" (makes {megabytes(size)} first)"
    if not st.button(f"Open it untrained{size_note}", key="open_system", type="primary"):
        return
    try:
        _open_system(system, text)
    except ModelError as error:
        say(str(error))
    except OSError:
        say("There is not enough disk space for this model; free some and try again.")
    else:
        redraw()


def _open_system(system: System, text: str) -> None:
    """Save, open and run it once, so that the next page shows it at once."""
    bar = st.progress(0.0, "Making its vocabulary and weights")
    folder = make_system(system, systems_root())
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


def _draw_train_button(system: System) -> None:
    """Draw a button to the Training page, with the document's shape and a quick task."""

    def choose_settings() -> None:
        widget_state.put("task", system.task)
        widget_state.put(f"{system.task}_like", system.preset)
        widget_state.put(f"{system.task}_lr", LEARNING_RATE)

    label = f"Train its shape on the task {system.task}"
    clicked = st.button(label, key="train_system", on_click=choose_settings)
    if clicked and "training" in session().pages:
        switch_page("training", task=system.task)


def preset_code(preset: str) -> None:
    model = Transformer(PRESETS[preset])
    print(model.n_parameters)
