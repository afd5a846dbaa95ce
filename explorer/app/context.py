"""The context of one run of a page: the choice, the open model and its forward pass, made once.

The frame makes it as soon as the sentence and the model are known. The lists of the bar, the note
on unknown words, the picture of the pass and the page all take it from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from explorer.analysis.default_head import default_head
from explorer.app import address, reader_models, streamlit_patches
from explorer.app.address_parameters import TEXT_LIMIT
from explorer.app.choice import TRAINED, Choice, Head, snapshots_of
from explorer.app.messages import NO_MODEL, end_page, say, say_why
from explorer.app.session import session, state_of
from explorer.catalog import ModelError
from explorer.catalog.attention_parts import Part, parts
from explorer.catalog.available_models import ModelEntry, entry_in
from explorer.catalog.opened_model import OpenModel, open_entry
from explorer.inference import forward_pass
from explorer.inference.chat_prompt import reading_prompts
from explorer.inference.forward_pass import ForwardPass, ForwardPassError
from explorer.system.limits import TEXT_CHARACTERS
from models import TransformerConfig
from models.loading.folder_config import OURS

Passed = ForwardPass | ForwardPassError | None


@dataclass(frozen=True, eq=False)
class PageContext:
    """The model is opened and the forward pass run once.

    If either fails, the page says why and ends. Among `models`, the chosen one is the snapshot of
    the chosen training step.
    """

    choice: Choice
    models: Mapping[str, ModelEntry]
    model: OpenModel | ModelError
    """The chosen model with its tokenizer, or why it cannot be opened."""
    default_head: Head
    """The part, layer and head that are shown if none are chosen."""
    passed: Passed = None
    """The forward pass over the sentence, or why there is none; None without a model."""

    def with_pass(self, forward: ForwardPass) -> "PageContext":
        """The same choices with another pass of this text, such as one with interventions."""
        return replace(self, passed=forward)

    @property
    def opened(self) -> OpenModel:
        """The chosen model."""
        if isinstance(self.model, ModelError):
            say(str(self.model))
            end_page()
        return self.model

    @property
    def forward(self) -> ForwardPass:
        """The chosen model's forward pass over the sentence."""
        if isinstance(self.passed, ForwardPass):
            return self.passed
        if self.passed is not None:
            say_why(self.passed, self.choice.text, self.choice.pair)
        _ = self.opened  # says why there is none
        end_page()

    @property
    def entry(self) -> ModelEntry:
        """The chosen model among `models`; where there is none, the page says so and ends."""
        if not self.models:
            _ = self.opened
        return self.models[self.choice.model]

    @property
    def title(self) -> str:
        """The title of the chosen model; empty if there is none."""
        return self.entry.title if self.models else ""

    @property
    def called(self) -> str:
        """The same, with the step if one is chosen."""
        step = self.choice.training_step
        return self.title if step == TRAINED else f"{self.title} at step {step:,}"

    @property
    def folder(self) -> Path:
        """The folder of the chosen model."""
        return self.entry.folder

    @property
    def part(self) -> Part:
        """The chosen kind of attention."""
        return self.forward.part(self.choice.part)


@dataclass
class CurrentContext:
    """The context of the page on screen; None between runs, and for a page that is run alone."""

    context: PageContext | None = None


def current_context() -> PageContext | None:
    """The context that the frame has made for this run."""
    return state_of(CurrentContext).context


def page_context() -> PageContext:
    """The context of this run; a page that is run alone, without the bar, makes its own."""
    return current_context() or make_context(reader_models.openable())


def make_context(models: Mapping[str, ModelEntry]) -> PageContext:
    """Make it from the values of the widgets, or from the address where nobody has chosen."""
    state = st.session_state
    if not models:
        no_head = "decoder.self_attn", 0, 0
        return PageContext(Choice("", "", "", *no_head), models, ModelError(NO_MODEL), no_head)
    entry = models.get(state.get("model", ""), reader_models.first(models))
    typed = state.get("text", entry.example), state.get("pair") if reads_pairs(entry) else ""
    bounds = TEXT_CHARACTERS.most, TEXT_LIMIT
    text, pair = (str(words or "")[:most] for words, most in zip(typed, bounds, strict=True))
    special, step = _reads_special(text), state.get("training_step", TRAINED)
    model = open_or_say_why(entry, special)
    passed = _pass_of(model, text, pair)
    first = _default_head(entry, model, passed)
    folder = snapshots_of(entry).get(step) if step != TRAINED else None
    if folder is None:
        step = TRAINED
    else:
        models = {**models, entry.name: entry_in(entry, folder)}
        model = open_or_say_why(models[entry.name], special)
        passed = _pass_of(model, text, pair)
    _follow(first)
    by_name = {part.name: part for part in parts_of(entry)}
    titles = {name: part.title for name, part in by_name.items()}
    part = by_name[settle("part", titles, first[0])]
    layer = settle("layer", _numbers(part.layers), min(first[1], part.layers - 1))
    head = part.name, layer, settle("head", _numbers(part.heads), first[2])
    choice = Choice(text, pair, entry.name, *head, special, step)
    return PageContext(choice, models, model, first, passed)


def open_or_say_why(entry: ModelEntry, special: bool = False) -> OpenModel | ModelError:
    """The model of an entry, or why it cannot be opened; `special` as in a choice."""
    try:
        opened = open_entry(entry)
        return reading_prompts(opened) if special else opened
    except ModelError as error:
        return error


def opened_as_chosen(entry: ModelEntry, choice: Choice) -> OpenModel:
    """Another model, whose tokenizer reads the text as the choice says.

    ModelError says why it cannot be opened.
    """
    opened = open_entry(entry)
    return reading_prompts(opened) if choice.special else opened


def open_first() -> None:
    """Open the models that are shown first, so that the first visitor does not wait."""
    if models := reader_models.everybodys():
        for entry in (reader_models.first(models), reader_models.default(models)):
            model = open_or_say_why(entry)
            _default_head(entry, model, _pass_of(model, entry.example))


def _pass_of(model: OpenModel | ModelError, text: str, pair: str = "") -> Passed:
    if isinstance(model, ModelError):
        return None
    try:
        return forward_pass.run_text(model, text, pair)
    except ForwardPassError as error:
        return error


def _default_head(entry: ModelEntry, opened: OpenModel | ModelError, passed: Passed) -> Head:
    if isinstance(opened, ModelError):
        return parts_of(entry)[-1].name, 0, 0
    return default_head(opened, passed if isinstance(passed, ForwardPass) else None)


def _follow(default: Head) -> None:
    """Let the head follow its default until the reader or a link chooses one."""
    state, defaults = st.session_state, session().defaults
    names = ("part", "layer", "head")
    chosen = tuple(map(state.get, names))
    if any(map(address.is_named, names)):
        follows = "head" in state and chosen == (None, None, None)  # another model was chosen
    else:
        follows = streamlit_patches.came_back() or chosen in (
            (None, None, None),
            defaults.get("head"),
        )
    if follows and "head" in state:
        state.update(zip(names, default, strict=True))
    defaults["head"] = default if follows else None


def _numbers(count: int) -> dict[int, str]:
    return {number: str(number) for number in range(count)}


def settle(key: str, options: Mapping[Any, str], default: Any) -> Any:
    """The chosen one of `options` (by their names), before they are drawn.

    It is read from the address if nobody has chosen, and after the browser's Back. A value that
    does not exist is replaced by the default.
    """
    state, requested = st.session_state, address.value_of(key)
    matches = [option for option, name in options.items() if name == requested]
    is_chosen, came_back = key in state, streamlit_patches.came_back()
    if matches and (came_back or not is_chosen):
        state[key] = matches[0]
    elif is_chosen and (came_back or state[key] not in options):
        state[key] = default
    return state.get(key, default)


def _reads_special(text: str) -> bool:
    """Whether this text is a prompt that was sent or comes by a link; another text ends it."""
    state = st.session_state
    if "special" not in state and address.value_of("special") == "true":
        state["special"] = text
    is_prompt = bool(text) and state.get("special") == text
    if is_prompt:
        address.write("special", "true")
    elif address.is_named("special"):
        address.remove("special")
    return is_prompt


def reads_pairs(entry: ModelEntry) -> bool:
    """Whether models of its family read one sentence or two."""
    return entry.family != OURS and config_of(entry).kind == "encoder"


def config_of(entry: ModelEntry) -> TransformerConfig:
    assert entry.config is not None, "only models that can be opened are listed"
    return entry.config


def parts_of(entry: ModelEntry) -> tuple[Part, ...]:
    """The kinds of attention of a model."""
    return parts(config_of(entry))
