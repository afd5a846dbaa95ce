"""Steering: adding the direction from the corrupted to the clean texts, and its effect."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.circuit_metrics import metric_in_words
from explorer.analysis.circuits.steering import (
    over_places,
    over_strengths,
    steered_text,
    steered_values,
    steering_cost,
    steering_of,
)
from explorer.analysis.circuits.text_pairs import Question
from explorer.app.context import PageContext
from explorer.app.controls import one_of, slider, text_field
from explorer.app.progress import bar
from explorer.catalog.opened_model import OpenModel
from explorer.charts.circuit_charts import steering_chart
from explorer.charts.figure_data import WINDOW
from explorer.components.chart import chart
from explorer.inference.core_edits import NotApplicableError, check_applicable, steering_direction
from explorer.inference.forward_pass import ForwardPassError, run_text
from explorer.inference.generation_limits import CANNOT_GENERATE, MAX_STEERED, can_generate
from explorer.interventions.edits import Steer
from explorer.text.number_format import three
from explorer.views.interventions.edit_forms import HEAD_OUTPUT, OF_TEXTS
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import code_panel, script
from explorer.views.shared.edit_history import direction_words, draw_history, edit_button
from explorer.views.shared.measurement import measurement
from models.interventions import Add

TEXT_HEIGHT = 130
"""Room for `MAX_STEERED` tokens, so that nothing moves with the strength."""


def draw_steering(context: PageContext, question: Question, adjust: DeltaGenerator) -> None:
    """The direction, the metric over strengths and places, and the text it generates."""
    at = context.choice
    charts = st.container()
    with st.container(horizontal=True, vertical_alignment="center"):
        head = at.head if one_of("steer_by", (OF_TEXTS, HEAD_OUTPUT)) == HEAD_OUTPUT else None
        steer = steering_of(question, at.part, at.layer, head, slider("steer_strength"))
        button = st.container(width="content")
    if why := _why_no_direction(context, steer):
        st.text(why)
    else:
        st.text(_in_words(context, question, steer))
        with charts:
            _draw_metrics(context, question, steer)
    prompt = _draw_texts(context, question, None if why else steer)
    with st.expander("Interventions: undo or remove"):
        st.caption("They apply on Overview, Logit lens, Interventions and Compare, not here.")
        draw_history(context)
        widgets.page_links("interventions")
    with button:
        edit_button(context, steer, "Add to the interventions", "add_steering", type="primary")
    lines = script(steering_code, context.opened, question, steer)
    if prompt:
        lines += script(steered_text_code, context.opened, steer, prompt)
    code_panel(Add, steering_direction, script=lines)


def _why_no_direction(context: PageContext, steer: Steer) -> str:
    try:
        check_applicable(context.opened, context.forward, steer)
        steering_direction(context.opened, steer)
    except NotApplicableError as error:
        return str(error)
    return ""


def _in_words(context: PageContext, question: Question, steer: Steer) -> str:
    """Where the direction is added, and its norm relative to the residual stream."""
    clean = run_text(context.opened, question.pairs[0].texts.clean)
    stream = clean.trace[f"{steer.part.split('.')[0]}.{steer.layer}.resid_post"][clean.row]
    length = float(steering_direction(context.opened, steer).norm())
    usual = float(stream.norm(dim=-1).median())
    share = f"{three(100 * abs(steer.strength) * length / usual)} %" if usual else "no share"
    return (
        f"{three(steer.strength)} × {direction_words(steer.head, steer.texts)}, added to the "
        f"residual stream after layer {steer.layer} at every position. The direction has norm "
        f"{three(length)} and the residual stream there {three(usual)} (median over the clean "
        f"text): the added vector has {share} of this norm."
    )


def _draw_metrics(context: PageContext, question: Question, steer: Steer) -> None:
    """Two charts: this direction at every strength, and at this strength in every layer or head."""
    opened, part = context.opened, context.part
    places = over_places(opened, steer, part.layers, part.heads)
    left, right = widgets.side_by_side(1, 1)
    with left:
        _draw_over(opened, question, "strength", steer, over_strengths(steer))
    with right:
        over = "layer" if steer.head is None else "head"
        _draw_over(opened, question, over, steer, places)
    pairs = len(question.pairs)
    spread = f": mean and standard deviation over {pairs} pairs" if pairs > 1 else ""
    right_is = "at this strength, " + ("after every layer" if steer.head is None else "every head")
    st.caption(
        f"Left: at every strength. Right: {right_is}. {question.metric} at the output position, "
        f"after the clean and after the corrupted "
        f"text{spread}. The dashed line is the current choice."
    )


def _draw_over(
    opened: OpenModel, question: Question, over: str, chosen: Steer, steers: Sequence[Steer]
) -> None:
    """Mean and standard deviation over the pairs; nothing before the reader starts it."""
    metrics = measurement(
        opened,
        "steered_strengths" if over == "strength" else "steered_places",
        ("steered", question.key, tuple(steers)),
        lambda report: steered_values(opened, question, steers, report),
        cost=steering_cost(opened, question, steers),
        doing="Steering",
    )
    if metrics is None:
        return
    places = [float(getattr(steer, over)) for steer in steers]
    metric, place = metric_in_words(question.metric), float(getattr(chosen, over))
    title = f"{question.metric} with a direction added, by {over}"
    with st.container(key=f"steered_over_{over}"):
        spec = steering_chart(over, places, metrics.clean, metrics.corrupted, metric, place)
        chart(spec, height=WINDOW, key=f"steered_by_{over}", title=title)


def _draw_texts(context: PageContext, question: Question, steer: Steer | None) -> str:
    """The continuation of a prompt without and with the direction. Returns the prompt."""
    opened = context.opened
    if not can_generate(opened):
        st.text(CANNOT_GENERATE)
        return ""
    prompt = text_field("steer_prompt", question.pairs[0].texts.corrupted)
    if not prompt.strip():
        st.text("There is nothing to continue: type a prompt.")
        return ""
    added: list[tuple[str, Steer | None]] = [("Without the direction", None)]
    if steer is not None:
        added.append((f"With {three(steer.strength)} × the direction", steer))
    texts = []
    try:
        for _, direction in added:
            with bar("Writing") as report:
                texts.append(steered_text(opened, prompt, direction, report))
    except (ForwardPassError, NotApplicableError) as error:
        st.text(str(error))
        return ""
    for place, (title, _), text in zip(widgets.side_by_side(1, 1), added, texts, strict=False):
        with place:
            st.markdown(f"**{title}**")
            with st.container(border=True, height=TEXT_HEIGHT):
                st.text(text.strip() or "no readable text")
    st.caption(f"The likeliest token each time, up to {MAX_STEERED} tokens after the prompt.")
    return prompt


def steering_code(opened: OpenModel, question: Question, steer: Steer) -> None:
    print(steering_direction(opened, steer).norm())
    curve = steered_values(opened, question, over_strengths(steer))
    print(curve.clean, curve.corrupted)  # the metric of each pair's texts, at every strength


def steered_text_code(opened: OpenModel, steer: Steer, prompt: str) -> None:
    print(steered_text(opened, prompt, steer))
