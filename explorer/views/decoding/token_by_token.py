"""One token after another, on the screen: the stages of a choice, the draw, and the branches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from explorer.analysis.sampling_stages import Stages, draw, stages
from explorer.app import number_controls
from explorer.app.context import page_context
from explorer.app.messages import or_stop
from explorer.app.progress import bar
from explorer.catalog.opened_model import Opened
from explorer.components import chips, matrix
from explorer.inference.branches import FULL, Branches
from explorer.inference.continuation import (
    Stand,
    Start,
    drawn_on,
    stand,
    start_of,
    tokens_of,
    unknown_in,
    why_stopped,
)
from explorer.inference.forward_pass import ForwardPassError
from explorer.snippets import decoding_code as snippets
from explorer.text.literal import literal
from explorer.text.number_format import three
from explorer.text.token_labels import text_of
from explorer.views.decoding import branch_history, branch_tree, sampling_columns
from explorer.views.shared import growing_text, widgets
from models.generation import Sampling

MOST_K, MOST_SEEDS = 1_000, 9_999
ROW, AROUND = 56, 150
"""Pixels of the largest row of the head's map, and of what stands above and below its rows."""


def show() -> Callable[[], str]:
    """The controls, what is written, the columns of the next choice, the branches, and a head.

    Gives the lines that make the choice.
    """
    opened, text = page_context().opened, page_context().choice.text
    start = or_stop(lambda: start_of(opened, text))
    sampling, seed, count = _sampling()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        drawing = st.container(horizontal=True, width="content", vertical_alignment="bottom")
        typing = st.container(width=280)
    found = branch_history.now(opened, start)
    found = _write_on(opened, start, found, sampling, seed, count)
    path = found.path()
    stopped = why_stopped(opened, start, path)
    here = found.nodes[found.at].parent if stopped and path else found.at
    step = found.depths[here]
    standing = or_stop(lambda: stand(opened, text, path[:step]))
    chosen = stages(standing.logits, sampling)
    next_one = draw(chosen, sampling, seed, step)
    with drawing:
        _buttons(found, next_one, stopped)
    with typing:
        _typed(opened, start, found, stopped)
    branch_history.say_told()
    _written(start, found, opened)
    _said(opened, chosen, sampling, next_one, seed, stopped)
    sampling_columns.show(opened, chosen, sampling, found, here, None if stopped else next_one)
    branch_tree.show(opened, text, found, standing, here)
    _head(standing)
    widgets.notes(standing.forward.notes)
    return partial(
        snippets.choice,
        standing.forward,
        page_context().folder,
        sampling,
        seed,
        step,
        first=len(start.begun) + step == 1,
    )


def _sampling() -> tuple[Sampling, int, int]:
    """What is chosen about the draw: the sampling, the seed, and how many tokens at once."""
    places = widgets.side_by_side(3, 2, 3, 2, 3)
    with places[0]:
        temperature = number_controls.slider("Temperature", "temperature", 0.0, 3.0, 1.0, step=0.05)
    with places[1]:
        top_k = number_controls.whole(
            "Top-k", "top_k", 0, MOST_K, 0, help="So many of the likeliest stay; 0 keeps all."
        )
    with places[2]:
        top_p = number_controls.slider("Top-p", "top_p", 0.01, 1.0, 1.0, step=0.01)
    with places[3]:
        seed = number_controls.whole("Seed", "seed", 0, MOST_SEEDS, 0)
    with places[4]:
        count = growing_text.length()
    return Sampling(temperature, top_k or None, top_p if top_p < 1 else None), seed, count


def _buttons(found: Branches, next_one: int, stopped: str) -> None:
    off = bool(stopped) or not found.room

    def write() -> None:
        branch_history.write(found, [next_one], forced=False)

    def write_on() -> None:
        st.session_state["_write_on"] = True

    st.button("Draw", key="draw", type="primary", on_click=write, disabled=off, shortcut="Right")
    branch_history.buttons(found)
    st.button("Write on", key="write_on", on_click=write_on, disabled=off)


def _typed(opened: Opened, start: Start, found: Branches, stopped: str) -> None:
    """Any tokens at all, as the reader writes them."""

    def write() -> None:
        typed, st.session_state["typed"] = st.session_state["typed"], ""
        try:
            tokens = tokens_of(opened, start, found.path(), typed)
        except ForwardPassError as error:
            branch_history.tell(str(error))
        else:
            branch_history.tell(" ".join(unknown_in(opened, typed)))
            branch_history.write(found, tokens, forced=True)

    st.text_input(
        "Or write it yourself",
        key="typed",
        on_change=write,
        max_chars=200,
        disabled=bool(stopped),
        placeholder="Any words, then Enter",
    )


def _write_on(
    opened: Opened, start: Start, found: Branches, sampling: Sampling, seed: int, count: int
) -> Branches:
    """Draw up to `count` tokens, where that was asked for; they are one step of the history."""
    is_stopped = why_stopped(opened, start, found.path())
    if not st.session_state.pop("_write_on", False) or is_stopped:
        return found
    path, tokens = list(found.path()), list[int]()
    with bar("Writing") as report:
        for token in drawn_on(opened, page_context().choice.text, path, sampling, seed):
            tokens.append(token)
            report(len(tokens) / count)
            if len(tokens) == count or why_stopped(opened, start, [*path, *tokens]):
                break
    fitting = found.fitting(tokens)
    found = found.write(tokens[:fitting], forced=False)
    if fitting < len(tokens):
        branch_history.tell(FULL.format(room=found.room))
    branch_history.put(found)
    branch_history.WRITTEN.settle({"branches": str(found)})
    return found


def _written(start: Start, found: Branches, opened: Opened) -> None:
    """Everything up to here; a click goes back behind a token."""
    line, begun = found.line(found.at), len(start.begun)

    def back(place: int) -> None:
        branch_history.put(found.stand(line[place - begun] if place >= begun else 0))

    tokens = [*start.begun, *map(opened.tokenizer.token, found.path())]
    chips(tokens, key="decoded", highlight=len(tokens) - 1, on_pick=back)


def _said(
    opened: Opened, chosen: Stages, sampling: Sampling, next_one: int, seed: int, stopped: str
) -> None:
    """What is drawn, or why nothing is; then what was cut."""
    name = literal(text_of(opened.tokenizer.label(next_one)))
    chance = three(float(chosen.final[next_one]))
    if stopped:
        st.text(f"{stopped} Shown is its last choice; Undo or another token goes on elsewhere.")
    elif sampling.temperature == 0:
        st.markdown(f"**Next: {name}**, the likeliest: at temperature 0 nothing is drawn.")
    elif chosen.left == 1:
        st.markdown(f"**Next: {name}**, the only one that is left.")
    else:
        st.markdown(f"**Next: {name}**, drawn by seed {seed} with probability {chance}.")
    st.caption(sampling_columns.cut_in_words(chosen, sampling))


def _head(standing: Stand) -> None:
    """The chosen head over what stands there; it grows with every token."""
    at, forward = page_context().choice, standing.forward
    words = forward.part(at.part).words
    weights = forward.weights(at.part, at.layer, at.head)
    st.markdown(f"**Layer {at.layer}, head {at.head}, up to here**")
    if at.part == "decoder.cross_attn":
        st.caption("The last row looks at your sentence while it decides on the next token.")
    matrix(
        weights,
        forward.rows(at.part),
        forward.columns(at.part),
        key="decoded_head",
        allowed=forward.mask(at.part, at.layer),
        row_name=words.row,
        column_name=words.column,
        sentence=words.cell,
        height=min(widgets.MATRIX_HEIGHT, AROUND + ROW * len(weights)),
        top=1.0,
    )
