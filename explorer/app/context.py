"""What one run of a page is about: the choice, the opened model, its forward pass; made once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import streamlit as st

from explorer.app import shelves, url
from explorer.app.address_table import TEXT_LIMIT
from explorer.app.messages import end_page, or_stop, say
from explorer.app.session import session
from explorer.app.training_steps import TRAINED, entry_at, snapshots_of
from explorer.catalog import ModelError, opened_model
from explorer.catalog.attention_parts import Part, parts
from explorer.catalog.available_models import ModelEntry
from explorer.catalog.folders import own_name
from explorer.catalog.opened_model import Opened
from explorer.inference import forward_pass
from explorer.inference.chat_prompt import reading_prompts
from explorer.inference.first_look import first_look
from explorer.inference.forward_pass import ForwardPass
from explorer.system.limits import TEXT_CHARACTERS
from models import TransformerConfig
from models.loading.folder_config import OURS

NO_MODEL = (
    "There is no trained model here yet. Train one on the Training page, or make those that "
    "ship with the app: python -m explorer checkpoints."
)


@dataclass(frozen=True)
class Choice:
    """Everything that is chosen once for all pages: the sentences, the model and one head."""

    text: str
    pair: str
    model: str
    part: str
    layer: int
    head: int
    special: bool = False
    """Whether special tokens that are written in the text are read as such: it is a prompt."""
    training_step: int = TRAINED
    """The step of the training at which the model is shown, where it has snapshots."""

    @property
    def called(self) -> str:
        """What the model is called in a title: its name, and the step where one is chosen."""
        name, step = own_name(self.model), self.training_step
        return name if step == TRAINED else f"{name} at step {step:,}"


FRAME = tuple(each.name for each in fields(Choice))
"""What is chosen once for all pages, by its name in the address."""


@dataclass(frozen=True, eq=False)
class PageContext:
    """One run of a page. The model is opened and the text passed when first asked for.

    On its `shelf` the chosen model is the one of the chosen step of its training.
    Where either cannot be done, the page says why in a sentence and ends.
    """

    choice: Choice
    shelf: Mapping[str, ModelEntry]

    @cached_property
    def opened(self) -> Opened:
        """The chosen model with its tokenizer."""
        try:
            if not self.shelf:
                raise ModelError(NO_MODEL)
            return opened_as_chosen(self.shelf[self.choice.model], self.choice)
        except ModelError as error:
            say(str(error))
            end_page()

    @cached_property
    def forward(self) -> ForwardPass:
        """The chosen model's forward pass over the sentence."""
        opened, text, pair = self.opened, self.choice.text, self.choice.pair
        return or_stop(lambda: forward_pass.run_text(opened, text, pair), text, pair)

    @property
    def folder(self) -> Path:
        """Where the chosen model is on this machine."""
        return self.shelf[self.choice.model].folder

    @property
    def part(self) -> Part:
        """The chosen kind of attention."""
        return self.forward.part(self.choice.part)


def opened_as_chosen(entry: ModelEntry, choice: Choice) -> Opened:
    """The model of an entry, chosen or not, whose tokenizer reads the text as the choice says.

    ModelError says in a sentence why it cannot be opened.
    """
    opened = opened_model.open_entry(entry)
    return reading_prompts(opened) if choice.special else opened


def page_context() -> PageContext:
    """The context of this run; a page run alone, without the bar, makes its own."""
    return session().context or make_context(shelves.openable())


def make_context(
    shelf: Mapping[str, ModelEntry], first: tuple[str, int, int] | None = None
) -> PageContext:
    """From what the widgets hold now; defaults where nothing was drawn.

    `first` is the part, layer and head of the chosen model that are shown first, where known.
    """
    state = st.session_state
    if not shelf:
        return PageContext(Choice("", "", "", "decoder.self_attn", 0, 0), shelf)
    entry = shelf.get(state.get("model", ""), shelves.first(shelf))
    part, layer, head = first or first_head(entry)
    kinds = {each.name: each for each in parts_of(entry)}
    part = state["part"] if state.get("part") in kinds else part
    layer = state["layer"] if state.get("layer") in range(kinds[part].layers) else layer
    head = state["head"] if state.get("head") in range(kinds[part].heads) else head
    typed = state.get("text", entry.example), state.get("pair") if reads_pairs(entry) else ""
    bounds = TEXT_CHARACTERS.most, TEXT_LIMIT
    text, pair = (str(each or "")[:most] for each, most in zip(typed, bounds, strict=True))
    special, step = _reads_special(text), state.get("training_step", TRAINED)
    folder = snapshots_of(entry).get(step) if step != TRAINED else None
    if folder is None:
        step = TRAINED
    else:
        shelf = {**shelf, entry.name: entry_at(entry, folder)}
    return PageContext(Choice(text, pair, entry.name, part, layer, head, special, step), shelf)


def _reads_special(text: str) -> bool:
    """Whether this text is a prompt that was sent, or comes by a link; another one ends it."""
    state = st.session_state
    if "special" not in state and url.asked("special") == "true":
        state["special"] = text
    is_prompt = bool(text) and state.get("special") == text
    if is_prompt:
        url.write("special", "true")
    elif url.is_asked("special"):
        url.remove("special")
    return is_prompt


def reads_pairs(entry: ModelEntry) -> bool:
    """Whether its family was made to read one sentence or two."""
    return entry.family != OURS and config_of(entry).kind == "encoder"


def config_of(entry: ModelEntry) -> TransformerConfig:
    assert entry.config is not None, "only models that can be opened are on the shelf"
    return entry.config


def parts_of(entry: ModelEntry) -> tuple[Part, ...]:
    """The kinds of attention of a model."""
    return parts(config_of(entry))


def first_head(entry: ModelEntry) -> tuple[str, int, int]:
    """The part, layer and head that a new reader sees first."""
    try:
        return first_look(opened_model.open_entry(entry))
    except ModelError:
        return parts_of(entry)[-1].name, 0, 0
