"""Sampling one token after another: the stages of each choice, the branches, and a head's map."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from explorer.app import controls
from explorer.app.context import PageContext
from explorer.app.messages import or_stop
from explorer.app.progress import bar
from explorer.app.session import session
from explorer.catalog.opened_model import Opened
from explorer.components import chips, matrix
from explorer.inference.branches import NO_ROOM, Branches
from explorer.inference.continuation import (
    Continuation,
    Prompt,
    continue_from,
    prompt_of,
    sample_tokens,
    stop_reason,
    typed_ids,
    unknown_in,
)
from explorer.inference.forward_pass import ForwardPassError
from explorer.inference.sampling_stages import SamplingStages, sample_token, sampling_stages
from explorer.snippets import decoding_code
from explorer.text.literal import literal
from explorer.text.number_format import three
from explorer.text.token_labels import candidate_text
from explorer.views.decoding import branch_tree
from explorer.views.decoding.sampling_columns import cut_summary, draw_sampling_stages
from explorer.views.shared import growing_text, widgets
from models.sampling import Sampling

MAX_TOP_K, MAX_SEED = 1_000, 9_999
ROW, AROUND = 56, 150
"""Pixels of the largest row of the head's map, and of what is above and below its rows."""


def draw_token_by_token(context: PageContext) -> Callable[[], str]:
    """The controls, the text so far, the next choice, the branches, a head; gives the code."""
    opened, text = context.opened, context.choice.text
    prompt = or_stop(lambda: prompt_of(opened, text))
    sampling, seed, count = _choose_sampling()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        buttons = st.container(horizontal=True, width="content", vertical_alignment="bottom")
        typing = st.container(width=280)
    found = branch_tree.current_branches(context, prompt)
    found = _generate(context, prompt, found, sampling, seed, count)
    path = found.path()
    stopped = stop_reason(opened, prompt, path)
    here = found.nodes[found.at].parent if stopped and path else found.at
    step = found.depths[here]
    continuation = or_stop(lambda: continue_from(opened, text, path[:step]))
    stages = sampling_stages(continuation.logits, sampling)
    sampled = sample_token(stages, sampling, seed, step)
    with buttons:
        _draw_buttons(found, sampled, stopped)
    with typing:
        _draw_typing(opened, prompt, found, stopped)
    branch_tree.say_once()
    _draw_text_so_far(opened, prompt, found)
    read = [*prompt.tokens, *map(opened.tokenizer.token, path[:step])]
    before = [token.label for token in read]
    name = candidate_text(opened.tokenizer.label(sampled), before)
    _draw_next(name, stages, sampling, float(stages.final[sampled]), seed, stopped)
    shown = None if stopped else sampled
    draw_sampling_stages(opened, stages, sampling, found, here, shown, before)
    branch_tree.draw_branches(context, found, continuation, here)
    _draw_head(context, continuation)
    widgets.notes(continuation.forward.notes)
    return partial(
        decoding_code.choice,
        continuation.forward,
        context.folder,
        sampling,
        seed,
        step,
        first=len(prompt.tokens) + step == 1,
    )


def _choose_sampling() -> tuple[Sampling, int, int]:
    """The sampling, the seed, and how many tokens are generated at once."""
    places = widgets.side_by_side(3, 2, 3, 2, 3)
    with places[0]:
        temperature = controls.slider("Temperature", "temperature", 0.0, 3.0, 1.0, step=0.05)
    with places[1]:
        top_k = controls.whole(
            "Top-k", "top_k", 0, MAX_TOP_K, 0, help="Keep the k likeliest tokens; 0 keeps all."
        )
    with places[2]:
        top_p = controls.slider("Top-p", "top_p", 0.01, 1.0, 1.0, step=0.01)
    with places[3]:
        seed = controls.whole("Seed", "seed", 0, MAX_SEED, 0)
    with places[4]:
        count = growing_text.choose_length()
    return Sampling(temperature, top_k or None, top_p if top_p < 1 else None), seed, count


def _draw_buttons(found: Branches, sampled: int, stopped: str) -> None:
    off = bool(stopped) or not found.room

    def sample() -> None:
        branch_tree.append_tokens(found, [sampled], forced=False)

    def go_on() -> None:
        session().goes_on = True

    st.button("Sample", key="draw", type="primary", on_click=sample, disabled=off, shortcut="Right")
    branch_tree.draw_history_buttons(found)
    st.button("Generate", key="write_on", on_click=go_on, disabled=off)


def _draw_typing(opened: Opened, prompt: Prompt, found: Branches, stopped: str) -> None:
    """A field for any tokens that the reader wants to force."""

    def force() -> None:
        typed, st.session_state["typed"] = st.session_state["typed"], ""
        try:
            tokens = typed_ids(opened, prompt, found.path(), typed)
        except ForwardPassError as error:
            session().branches_said = str(error)
        else:
            session().branches_said = " ".join(unknown_in(opened, typed))
            branch_tree.append_tokens(found, tokens, forced=True)

    st.text_input(
        "Or type the next words",
        key="typed",
        on_change=force,
        max_chars=200,
        disabled=bool(stopped),
        placeholder="Any words, then Enter",
    )


def _generate(
    context: PageContext, prompt: Prompt, found: Branches, sampling: Sampling, seed: int, count: int
) -> Branches:
    """After a click, sample up to `count` tokens; Undo takes them back together."""
    opened, reader, path = context.opened, session(), list(found.path())
    is_asked, reader.goes_on = reader.goes_on, False
    if not is_asked or stop_reason(opened, prompt, path):
        return found
    tokens = list[int]()
    with bar("Generating") as report:
        for token in sample_tokens(opened, context.choice.text, path, sampling, seed):
            tokens.append(token)
            report(len(tokens) / count)
            if len(tokens) == count or stop_reason(opened, prompt, [*path, *tokens]):
                break
    fitting = found.fitting(tokens)
    found = found.append(tokens[:fitting], forced=False)
    if fitting < len(tokens):
        reader.branches_said = NO_ROOM.format(room=found.room)
    branch_tree.put_branches(found)
    branch_tree.ADDRESS.settle({"branches": str(found)})
    return found


def _draw_text_so_far(opened: Opened, prompt: Prompt, found: Branches) -> None:
    """The tokens up to the current node; a click goes back to a token."""
    line, begun = found.nodes_to(found.at), len(prompt.tokens)

    def back(place: int) -> None:
        branch_tree.put_branches(found.go_to(line[place - begun] if place >= begun else 0))

    tokens = [*prompt.tokens, *map(opened.tokenizer.token, found.path())]
    chips(tokens, key="decoded", highlight=len(tokens) - 1, on_pick=back)


def _draw_next(
    name: str,
    stages: SamplingStages,
    sampling: Sampling,
    probability: float,
    seed: int,
    stopped: str,
) -> None:
    """The next token, or why there is none; then what was cut."""
    name, share = literal(name), three(probability)
    if stopped:
        st.text(f"{stopped} The table shows the last choice; undo it or click another token.")
    elif sampling.temperature == 0:
        st.markdown(f"**Next: {name}**, the likeliest; at temperature 0 nothing is sampled.")
    elif stages.left == 1:
        st.markdown(f"**Next: {name}**, the only one that is left.")
    else:
        st.markdown(f"**Next: {name}**, sampled with seed {seed}, probability {share}.")
    st.caption(cut_summary(stages, sampling))


def _draw_head(context: PageContext, continuation: Continuation) -> None:
    """The chosen head over the text so far; it grows with every token."""
    at, forward = context.choice, continuation.forward
    words = forward.part(at.part).words
    weights = forward.weights(at.part, at.layer, at.head)
    st.markdown(widgets.bold_title(f"{widgets.head_title(context)}, text so far"))
    if at.part == "decoder.cross_attn":
        st.caption("The last row attends to your sentence to predict the next token.")
    matrix(
        weights,
        forward.rows(at.part),
        forward.columns(at.part),
        key="decoded_head",
        allowed=forward.mask(at.part, at.layer),
        row_name=words.row,
        column_name=words.column,
        sentence=words.cell,
        title=widgets.head_title(context),
        height=min(widgets.MATRIX_HEIGHT, AROUND + ROW * len(weights)),
        top=1.0,
    )
