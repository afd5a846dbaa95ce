"""A sentence that grows: what stands there at each step, a head's map of it, the next token."""

from __future__ import annotations

import streamlit as st

from explorer.analysis.forward_pass.pass_stages import stages_of
from explorer.app.context import page_context
from explorer.app.messages import or_stop, say
from explorer.app.number_controls import slider
from explorer.app.session import session
from explorer.app.sidebar import switch_page
from explorer.catalog.opened_model import Opened
from explorer.charts.bars import bars
from explorer.components import chips, matrix
from explorer.inference.generated_text import (
    MOST_WRITTEN,
    ONLY_READS,
    Writing,
    labels_so_far,
    writes,
    writing,
)
from explorer.views.shared import pass_position, widgets
from explorer.views.shared.step_slider import stepper

USUAL_LENGTH = 12


def written() -> Writing:
    """What the chosen model writes behind the sentence; where it cannot, the page says why."""
    opened, at = page_context().opened, page_context().choice
    must_write(opened)
    count = length()
    return or_stop(lambda: writing(opened, at.text, count))


def must_write(opened: Opened) -> None:
    """A model that only reads is told so, with the way to what it gives; the page ends there."""
    if writes(opened):
        return
    say(ONLY_READS)
    page = session().pages.get("forward_pass")
    if page is not None:
        last = stages_of(opened.config)[-1].name
        clicked = st.button(
            "What it gives instead: the last stage of the whole pass",
            key="to_last_stage",
            type="tertiary",
            icon=":material/arrow_forward:",
            on_click=pass_position.FOLDED.put,
            args=("stage", last),
        )
        if clicked:
            switch_page("forward_pass")
    st.stop()


def length() -> int:
    """How many tokens are written at once, on every page that writes."""
    return int(slider("Tokens to write", "length", 1, MOST_WRITTEN, USUAL_LENGTH))


def show(grown: Writing) -> None:
    """One step at a time; the map keeps its size, and what is not written yet is hatched."""
    names = [f"{place} of {grown.steps}" for place in range(grown.steps + 1)]
    step = stepper("Step", "written", names, 0, arrows=True)
    at, forward = page_context().choice, grown.forward
    before = forward.target[: grown.begun]
    chips([*before, *grown.tokens[:step]], key="written_tokens", highlight=grown.begun + step - 1)
    picture, beside = widgets.side_by_side(3, 2)
    with picture:
        st.markdown(f"**Layer {at.layer}, head {at.head}**")
        words = forward.part(at.part).words
        rows, columns = grown.size(at.part, step)
        matrix(
            grown.weights(at.part, at.layer, at.head, step),
            labels_so_far(forward.rows(at.part), rows),
            labels_so_far(forward.columns(at.part), columns),
            key="written_head",
            allowed=forward.mask(at.part, at.layer),
            row_name=words.row,
            column_name=words.column,
            sentence=words.cell,
            absent="may not look, or not written yet",
            height=widgets.MATRIX_HEIGHT,
            top=1.0,
        )
    with beside:
        _next(grown, step)


def _next(grown: Writing, step: int) -> None:
    if step == grown.steps:
        st.markdown("**All is written**")
        st.text(
            "The last token ends the text."
            if grown.has_ended
            else f"Cut after {grown.steps} tokens: the model had not ended."
        )
        return
    guesses = grown.guesses(step, page_context().opened.tokenizer.label)
    st.markdown("**What comes next**")
    many = f"The {len(guesses)} likeliest tokens it may write; the first of them is written."
    st.caption(many if len(guesses) > 1 else "No other token has a chance here.")
    spec = bars([guess.label for guess in guesses], [guess.probability for guess in guesses])
    st.vega_lite_chart(spec, width="stretch", height=28 * len(guesses) + 30, key="written_next")
