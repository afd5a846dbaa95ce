"""The parts that several pages share: the opening and closing, the map of a head, the output."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from explorer.analysis.map_summary import summary_of
from explorer.analysis.output_change import has_words
from explorer.app import widget_state
from explorer.app.choosing import ARRIVAL, choose_model, draw_page_link
from explorer.app.context import PageContext
from explorer.app.controls import option_of, token
from explorer.app.messages import kept_notes, take_notes
from explorer.app.page_table import ROWS
from explorer.app.persistent_choices import PersistentChoices
from explorer.app.session import session, state_of
from explorer.app.sidebar import draw_title
from explorer.app.suggest_model import UNKNOWN_WORDS
from explorer.catalog import attention_parts
from explorer.catalog.attention_parts import Part
from explorer.charts.bars import score_bars
from explorer.charts.figure_data import WINDOW
from explorer.components import mounting
from explorer.components.chart import chart
from explorer.components.chips import chips
from explorer.components.matrix import matrix
from explorer.components.page_top import page_top
from explorer.inference.answers import score_words, shown_place
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.results_cache import cached
from explorer.text.number_format import three
from explorer.text.token_labels import Label
from explorer.text.visible_text import literal, literal_sentence
from explorer.views.lessons.panel import draw_lesson
from explorer.views.shared.code_panel import Script, code_panel
from explorer.views.shared.export_panel import Make, export_button, origin
from explorer.views.shared.sidebar_parts import draw_miniature, draw_tools

Result = TypeVar("Result")
WIDEST = 1760
"""Pixels: a picture and the one next to it stay together on a wide screen."""

LONGEST_TITLE = 400
"""A title contains the name of a folder, which has at most 255 characters."""

OUTPUTS = {"next": "Next-token probabilities", "mask": "Probabilities for the mask"}

NO_FINITE_PROBABILITIES = (
    "The probabilities are not a number (NaN), because the logits are not finite: choose another "
    "model, or read on the page Models which of its tensors is at fault."
)
ENDS_IN_VECTORS = "This model has no head: its output is one vector for each token."


@dataclass(frozen=True)
class ViewSpec:
    """One view of a page: what the reader sees in it, what draws it, and the code behind it."""

    sentence: str
    draw: Callable[..., Any]
    code: tuple[Callable[..., Any], ...] = ()


def opening_of_view(title: str, key: str, views: Mapping[str, ViewSpec]) -> None:
    """Open a page of several views with the sentence of the one that `key` chooses."""
    opening(title, views[option_of(key, list(views))].sentence)


def opening(title: str, sentence: str) -> None:
    """Open a page with its title and one sentence about what it shows."""
    line = st.container(horizontal=True, gap="small", key="opening")
    with st.container(gap=None, key="below_opening"):  # elements without height take no room
        page_top()
        mounting.begin()
        with line:
            with st.container(horizontal=True, gap="small", width="content", key="title"):
                draw_title(title)
            here = session().page, session().shown_model
            added = map(literal_sentence, take_notes(ARRIVAL, here))
            st.markdown(" ".join((sentence, *added)), width="stretch")
        draw_miniature()
        draw_tools()
        draw_lesson()


def closing(
    about: PageContext | Mapping[str, str],
    *functions: Callable[..., Any],
    script: Script | None = None,
    own: Mapping[str, Make] | None = None,
    label: str = "Code",
) -> None:
    """Close a page with the export of its figures and the code that computes what is on screen.

    `about` says where the numbers come from; `own` makes the main figures, by the key of their
    view, and `functions` are those of the core behind them.
    """
    export_button(origin(about) if isinstance(about, PageContext) else about, own)
    code_panel(*functions, script=script, label=label)


def side_by_side(*shares: int) -> list[DeltaGenerator]:
    """Columns that do not drift apart on a wide screen."""
    return st.container(width=WIDEST).columns(shares, gap="medium")


def recomputed(what: str, error: float) -> str:
    """How far a recomputed value is from the forward pass; the error is NaN if none is finite."""
    if math.isnan(error):
        return f"{what}: no value is finite, so there is nothing to compare."
    return f"{what}: max relative error {three(error)}."


def check(what: str, error: float) -> None:
    """The same for the code panel; where there is nothing to compare, for the page."""
    say = st.caption if math.isnan(error) else state_of(mounting.PageViews).checks.append
    say(recomputed(f"{what}, recomputed in float64", error))


def notes(sentences: Iterable[str]) -> None:
    """Sentences about what is on screen, except those that stand under the bar."""
    for sentence in sentences:
        if sentence not in kept_notes(UNKNOWN_WORDS):
            st.text(sentence)


def shown_part(context: PageContext, fitting: Sequence[Part], why: str) -> PageContext:
    """The context; with the first of these parts, and a sentence, where none of them is chosen."""
    at, part = context.choice, fitting[0]
    if context.part in fitting:
        return context
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{part.words.name} is shown: {why}.", width="content")
        for one in fitting:
            label, put = f"Choose {one.words.name.lower()}", widget_state.put
            st.button(label, key=f"follow_{one.title}", on_click=put, args=("part", one.name))
    layer, head = min(at.layer, part.layers - 1), min(at.head, part.heads - 1)
    choice = replace(at, part=part.name, layer=layer, head=head)
    return replace(context, choice=choice).with_pass(context.forward)


def offer_models(names: Sequence[str]) -> None:
    """A button for each model, which opens it."""
    with st.container(horizontal=True):
        for model in names:
            label = f"Open {literal(model)}"
            st.button(label, key=f"with_{model}", on_click=choose_model, args=(model,))


def head_title(context: PageContext) -> str:
    """The title of the chosen head's map."""
    at = context.choice
    return attention_parts.head_title(context.called, *at.place)


def bold_title(title: str) -> str:
    """The title of a map or chart in bold, as Markdown; the model in it has a reader's own name."""
    return f"**{literal(title, longest=LONGEST_TITLE)}**"


def of_head(context: PageContext, what: str, make: Callable[[], Result]) -> Result:
    """What is made of the chosen head of this pass, once."""
    return cached(context.opened, (what, *context.forward.key, *context.choice.place), make)


def weights_of_head(context: PageContext) -> Tensor:
    """The attention weights of the chosen head (queries, keys)."""
    place = context.choice.place
    return of_head(context, "weights of a head", lambda: context.forward.weights(*place))


def head_summary(context: PageContext) -> str:
    """A summary of the chosen head's map, computed from its weights once."""
    at, passed = context.choice, context.forward
    weights, allowed = weights_of_head(context), passed.mask(at.part, at.layer)
    sides, words = (passed.rows(at.part), passed.columns(at.part)), passed.part(at.part).words
    make = partial(summary_of, weights, allowed, *sides, words.cell)
    return of_head(context, "summary of a head", make)


def draw_head(context: PageContext, key: str) -> None:
    """The chosen head, as large as the window allows: queries down, keys across."""
    at, title = context.choice, head_title(context)
    allowed = context.forward.mask(at.part, at.layer)
    kept = partial(of_head, context, f"message of a head: {title}")
    weights = weights_of_head(context)
    draw_weights(context.forward, at.part, weights, key, title, allowed=allowed, kept=kept)


def draw_map(
    forward: ForwardPass,
    part: str,
    layer: int,
    head: int,
    key: str,
    title: str,
    height: int | str,
    ghost: Tensor | None = None,
    heading: str = "",
) -> None:
    """The raw attention weights of a head; a cell that is true in `ghost` has a frame."""
    weights, allowed = forward.weights(part, layer, head), forward.mask(part, layer)
    draw_weights(
        forward, part, weights, key, title, height, allowed=allowed, ghost=ghost, heading=heading
    )


def draw_weights(
    forward: ForwardPass,
    part: str,
    weights: Tensor,
    key: str,
    title: str,
    height: int | str = WINDOW,
    *,
    rows: Sequence[Label] = (),
    columns: Sequence[Label] = (),
    **drawing: Any,
) -> None:
    """Attention weights over the tokens of a pass, or over other `rows` and `columns`.

    `drawing` are more arguments of `matrix`; they replace the usual ones.
    """
    words = forward.part(part).words
    usual = {"sentence": words.cell, "top": 1.0}
    across = columns or forward.columns(part)
    how: dict[str, Any] = {**usual, "title": title, "height": height, **drawing}
    matrix(weights, rows or forward.rows(part), across, key=key, **how)


def draw_answer(forward: ForwardPass, key: str = "answer") -> None:
    """The model's output for the sentence: a text, or the likeliest options."""
    answer = forward.answer
    if answer.kind == "text" and (forward.output_tokens or answer.text):
        st.markdown("**Generated text**")
        if forward.output_tokens:
            chips(forward.output_tokens, key=key)
        else:
            st.text(answer.text)
        notes(filter(None, [answer.note]))
        return
    if not answer.guesses:
        st.text(answer.note if answer.kind == "mask" else ENDS_IN_VECTORS)
        return
    words = score_words(forward.config)
    title = OUTPUTS.get(answer.kind, words.title)
    st.markdown(f"**{title}**")
    if any(math.isnan(guess.score) for guess in answer.guesses):
        st.text(NO_FINITE_PROBABILITIES)
        return
    many = "" if answer.kind == "classes" else f"The {len(answer.guesses)} likeliest tokens. "
    st.caption(f"{many}{literal_sentence(answer.note)}")
    labels = [guess.label for guess in answer.guesses]
    if words.score == "value" and len(labels) == 1:  # nothing to compare its length with
        st.text(f"{labels[0]}: {three(answer.guesses[0].score)}")
        return
    spec = score_bars(labels, [guess.score for guess in answer.guesses], words.score)
    chart(spec, height=28 * len(labels) + 30, key=key, title=title)


def page_links(*names: str) -> None:
    """Links to other pages; a page that runs alone has none."""
    for name in names:
        draw_page_link(name, ROWS[name].link or ROWS[name].title)


ANSWER = PersistentChoices("answer", {"answer": ""})
"""The same position in the picture of the pass; empty if nobody chose one."""
PREDICTS = {
    "decoder": "The model predicts the token after this one.",
    "encoder": "The model predicts the token in this place.",
    "encoder-decoder": "The model predicted this token of its answer.",
}


def choose_output_position(context: PageContext) -> int:
    """The chosen output position; 0 if the model gives one answer for the whole text."""
    opened, forward = context.opened, context.forward
    if not has_words(opened.config):
        return 0
    kind, inputs = opened.config.kind, forward.last_stack_tokens
    tokens = forward.output_tokens if kind == "encoder-decoder" else inputs
    default = shown_place(opened, inputs)
    picked = token("expected_at", tokens, default, help=PREDICTS[kind], width=360)
    ANSWER.put("answer", "" if picked == default else str(picked))
    return picked
