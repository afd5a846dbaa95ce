"""A generated text, step by step: its tokens, a head's map of it, the next-token probabilities."""

from __future__ import annotations

import math

import streamlit as st

from explorer.analysis.forward_pass.stages import stages_of
from explorer.app.choosing import switch_page
from explorer.app.context import PageContext
from explorer.app.controls import slider
from explorer.app.messages import or_stop, say
from explorer.app.session import session
from explorer.catalog.opened_model import Opened
from explorer.charts.bars import probability_bars
from explorer.components import chips, matrix
from explorer.components.chart import chart
from explorer.inference.generated_text import (
    CANNOT_GENERATE,
    MAX_GENERATED,
    GeneratedText,
    can_generate,
    generate_text,
    labels_until,
)
from explorer.text.token_labels import candidate_text
from explorer.views.shared import pass_position, widgets
from explorer.views.shared.step_slider import stepper

USUAL_LENGTH = 12


def generate_from(context: PageContext) -> GeneratedText:
    """What the chosen model generates after the sentence; the page says why where it cannot."""
    opened = context.opened
    require_generation(opened)
    count = choose_length()
    return or_stop(lambda: generate_text(opened, context.choice.text, count))


def require_generation(opened: Opened) -> None:
    """For a model that does not generate, a link to its output; the page ends there."""
    if can_generate(opened):
        return
    say(CANNOT_GENERATE)
    if "forward_pass" in session().pages:
        last = stages_of(opened.config)[-1].name
        clicked = st.button(
            "Its output: the last stage of the forward pass",
            key="to_last_stage",
            type="tertiary",
            icon=":material/arrow_forward:",
            on_click=pass_position.STAGE_CHOICES.put,
            args=("stage", last),
        )
        if clicked:
            switch_page("forward_pass")
    st.stop()


def choose_length() -> int:
    """How many tokens are generated at once, on every page that generates."""
    return int(slider("Tokens to generate", "length", 1, MAX_GENERATED, USUAL_LENGTH))


def draw_generated_text(context: PageContext, generated: GeneratedText) -> None:
    """One step at a time; the map keeps its size, and what is not generated yet is hatched."""
    names = [f"{place} of {generated.steps}" for place in range(generated.steps + 1)]
    step = stepper("Step", "written", names, 0, arrows=True)
    at, forward, prompt = context.choice, generated.forward, generated.prompt_length
    tokens = generated.tokens_before(step)
    chips(tokens, key="written_tokens", highlight=prompt + step - 1)
    left, right = widgets.side_by_side(3, 2)
    with left:
        st.markdown(widgets.head_heading(context))
        words = forward.part(at.part).words
        rows, columns = generated.size(at.part, step)
        matrix(
            generated.weights(at.part, at.layer, at.head, step),
            labels_until(forward.rows(at.part), rows),
            labels_until(forward.columns(at.part), columns),
            key="written_head",
            allowed=generated.mask(at.part, at.layer, step),
            row_name=words.row,
            column_name=words.column,
            sentence=words.cell,
            title=widgets.head_title(context),
            absent="masked or not generated yet",
            height=widgets.MATRIX_HEIGHT,
            top=1.0,
        )
    with right:
        _draw_next_tokens(context.opened, generated, step)


def _draw_next_tokens(opened: Opened, generated: GeneratedText, step: int) -> None:
    if step == generated.steps:
        st.markdown("**End**")
        st.text(
            "The last token ends the text."
            if generated.has_ended
            else f"Stopped at {generated.steps} tokens, before the end of the text."
        )
        return
    before = [token.label for token in generated.tokens_before(step)]
    guesses = generated.guesses(
        step, lambda token: candidate_text(opened.tokenizer.label(token), before)
    )
    st.markdown("**Next-token probabilities**")
    if any(math.isnan(guess.probability) for guess in guesses):
        st.text(widgets.NO_PROBABILITIES)
        return
    many = f"The {len(guesses)} likeliest tokens; the first one is generated."
    st.caption(many if len(guesses) > 1 else "No other token has a probability above 0.")
    spec = probability_bars(
        [guess.label for guess in guesses], [guess.probability for guess in guesses]
    )
    title = "Next-token probabilities"
    chart(spec, height=28 * len(guesses) + 30, key="written_next", title=title)
