"""Steering: the direction from the corrupted to the clean texts, and what it does when added."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.app.context import PageContext
from explorer.app.controls import one_of, slider, text_field
from explorer.app.progress import bar
from explorer.app.url import TEXT_LIMIT
from explorer.charts.steering_chart import CLEAN, CORRUPTED, SteeredPoint, steering_chart
from explorer.circuits.steering import (
    SteeringCurves,
    steering_cost,
    steering_curves,
    steering_of,
)
from explorer.circuits.text_pairs import Question
from explorer.components.chart import chart
from explorer.inference.continuation import CANNOT_GENERATE, can_generate
from explorer.inference.core_edits import NotApplicableError, check_applicable, steering_direction
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.inference.results_cache import kept
from explorer.inference.steered_text import MOST_WRITTEN, steered_text
from explorer.interventions.edits import Steer
from explorer.snippets.steering_code import steering_lines
from explorer.text.number_format import three
from explorer.views.interventions.edit_forms import HEAD_OUTPUT, OF_TEXTS, STRONGEST
from explorer.views.interventions.many_passes import is_started
from explorer.views.shared import widgets
from explorer.views.shared.edit_descriptions import direction_words
from explorer.views.shared.edit_history import draw_history, edit_button
from models.interventions import Add

CHART_HEIGHT = 320
TEXT_HEIGHT = 130
"""Room for `MOST_WRITTEN` tokens, so that nothing moves with the strength."""


def draw_steering(context: PageContext, question: Question) -> None:
    """The direction and the metric over strengths, beside the texts without and with it."""
    left, right = widgets.side_by_side(8, 7)
    with left:
        steer = _choose_direction(context, question)
        button = st.container(horizontal=True, vertical_alignment="center")
        why = _draw_effect(context, question, steer)
    with right:
        prompt = _draw_texts(context, question, None if why else steer)
    with st.expander("Interventions: undo or remove"):
        draw_history(context)
    with button:
        edit_button(context, steer, "Add to the interventions", "add_steering", type="primary")
        widgets.page_links("interventions")
    clean = run_text(context.opened, question.pairs[0].texts.clean)
    script = partial(steering_lines, clean, context.folder, question, steer, prompt)
    widgets.code_panel(Add, steering_direction, script=script)


def _choose_direction(context: PageContext, question: Question) -> Steer:
    at = context.choice
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = one_of("Direction", "steer_by", (OF_TEXTS, HEAD_OUTPUT))
        strength = slider("Strength", "steer_strength", -STRONGEST, STRONGEST, 1.0, step=0.25)
    head = at.head if kind == HEAD_OUTPUT else None
    return steering_of(question, at.part, at.layer, head, strength)


def _draw_effect(context: PageContext, question: Question, steer: Steer) -> str:
    """How long the direction is, and the chart; a sentence where there is no direction."""
    opened = context.opened
    try:
        check_applicable(opened, context.forward, steer)
        direction = steering_direction(opened, steer)
    except NotApplicableError as error:
        st.text(str(error))
        return str(error)
    clean = run_text(opened, question.pairs[0].texts.clean)
    stream = clean.trace[f"{steer.part.split('.')[0]}.{steer.layer}.resid_post"][clean.row]
    length, usual = float(direction.norm()), float(stream.norm(dim=-1).median())
    share = f"{three(100 * abs(steer.strength) * length / usual)} %" if usual else "no share"
    st.text(
        f"{three(steer.strength)} × {direction_words(steer.head, steer.texts)}, added to the "
        f"residual stream after layer {steer.layer} at every position. The direction has norm "
        f"{three(length)}, the stream {three(usual)} (median over the clean text), so "
        f"{share} of it is added."
    )
    key = ("steering", question.key, steer.part, steer.layer, steer.head)
    if not is_started("steering", (opened.name, *key), steering_cost(opened, question, steer)):
        return ""

    def measure() -> SteeringCurves:
        with bar("Steering") as report:
            return steering_curves(opened, question, steer, report=report)

    found = kept(opened, key, measure, lambda made: made.bytes)
    spec = steering_chart(points(found), question.metric.lower(), steer.strength)
    title = f"{question.metric} over the strength of the direction"
    chart(spec, height=CHART_HEIGHT, key="steered_metric", title=title)
    pairs = len(question.pairs)
    over = f": mean and standard deviation over {pairs} pairs" if pairs > 1 else ""
    st.caption(
        f"{question.metric} at the position that is read, after the clean and after the corrupted "
        f"text{over}. The dashed rule is the chosen strength."
    )
    return ""


def points(found: SteeringCurves) -> list[SteeredPoint]:
    """The chart's points: mean and standard deviation over the pairs."""
    return [
        SteeredPoint(
            strength,
            which,
            float(values[:, at].mean()),
            float(values[:, at].std(correction=0)) if len(values) > 1 else 0.0,
        )
        for which, values in ((CLEAN, found.clean), (CORRUPTED, found.corrupted))
        for at, strength in enumerate(found.strengths)
    ]


def _draw_texts(context: PageContext, question: Question, steer: Steer | None) -> str:
    """What is written after a prompt, without and with the direction; gives the prompt."""
    opened = context.opened
    if not can_generate(opened):
        st.text(CANNOT_GENERATE)
        return ""
    usual = question.pairs[0].texts.corrupted
    prompt = text_field("Prompt", "steer_prompt", TEXT_LIMIT, usual)
    if not prompt.strip():
        return ""
    for title, added in (("Without the direction", None), ("With the direction", steer)):
        st.markdown(f"**{title}**")
        with st.container(border=True, height=TEXT_HEIGHT):
            if added is None and title.startswith("With the"):
                st.text("There is no direction to add.")
                continue
            try:
                with bar("Writing") as report:
                    written = steered_text(opened, prompt, added, report)
            except (ForwardPassError, NotApplicableError) as error:
                st.text(str(error))
                return ""
            st.text(written.strip() or "no readable text")
    st.caption(f"The likeliest token each time, up to {MOST_WRITTEN} tokens after the prompt.")
    return prompt
