"""Find the mistake: a model with a hidden mistake, and the instruments that can show it."""

import random

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import widget_state
from explorer.app.context import PageContext
from explorer.app.controls import one_of, whole
from explorer.app.messages import say
from explorer.app.session import redraw, state_of
from explorer.views.museum.exhibit_view import (
    comparison,
    draw_how_to_spot,
    draw_picture,
    draw_result,
    head_place,
    instrument_script,
    measure,
)
from explorer.views.museum.exhibits import EXHIBITS, FINDABLE, Exhibit
from explorer.views.museum.instruments import INSTRUMENTS, InstrumentResult
from explorer.views.museum.mistakes import MISTAKES
from explorer.views.shared import widgets
from explorer.views.shared.code_panel import Script

TRIES_ALLOWED = 2


class Answers(dict[str, dict[str, bool]]):
    """For each question, the answers in order and whether each was right."""


def draw_find_mistake(context: PageContext, row: DeltaGenerator) -> Script | None:
    """Draw a question: both pictures of an instrument, and the answer beside them; return the code.

    The controls stand in the `row`. Until the question is settled, the code is that of the right
    model, so as not to give it away.
    """
    opened = context.opened
    fitting = [
        exhibit for exhibit in FINDABLE if MISTAKES[exhibit.name].misfit(opened.config) is None
    ]
    if not fitting:
        say(
            "This model can have none of these mistakes. Choose another model above, such as "
            "translation."
        )
        return None
    forward, head = context.forward, head_place(context, context.opened)

    def results(instrument: str) -> list[InstrumentResult]:
        return [
            measure(opened, forward, mistake, (instrument,), head)[instrument]
            for mistake in (hidden.name, "")
        ]

    widgets.notes(forward.notes)
    with row:
        names = list(INSTRUMENTS)
        name = one_of("instrument", names, "Attention map", as_list=True, width=270)
        button = st.container(width="content")
    result_column, right_column, answer_column = widgets.side_by_side(5, 5, 4)
    with answer_column:
        answer = st.container()
        seed, place = _choose_question(len(fitting), button)
    hidden = mistakes_in_order(fitting, seed)[place]
    wrong, right = results(name)
    with result_column:
        if wrong.picture is not None:
            draw_picture(wrong.picture, "found", "with a mistake")
        with st.container(key="found_result"):
            draw_result(wrong, right)
    with right_column:
        if right.picture is not None:
            draw_picture(right.picture, "found_right", "as it should be")
    key = f"{opened.name}_{seed}_{place}"
    with answer:
        st.text(
            f"It is one of {len(fitting)} of the {len(EXHIBITS)} mistakes: a copy of this model "
            "cannot have the others. Choose what to measure with, then answer."
        )
        if wrong.picture and right.picture and wrong.picture.is_like(right.picture):
            st.text("The pictures do not differ here: measure with something else.")
        _draw_answer(hidden, fitting, key)
        settled = [answers for answers in state_of(Answers).values() if _is_settled(answers)]
        if settled:
            n_right = sum(any(answers.values()) for answers in settled)
            st.text(f"Found so far: {n_right} of {len(settled)}.")
    if not _is_settled(state_of(Answers).get(key, {})):
        return instrument_script(opened, forward, head, ("",), name)
    wrong, right = results(hidden.instrument)
    draw_how_to_spot(hidden, comparison(hidden, wrong, right))
    st.text(f"With the mistake: {wrong.sentence}")
    st.text(f"As it should be: {right.sentence}")
    return instrument_script(opened, forward, head, (hidden.name, ""), name)


def mistakes_in_order(exhibits: list[Exhibit], seed: int) -> list[Exhibit]:
    """Every mistake once, shuffled with the seed."""
    return random.Random(seed).sample(exhibits, len(exhibits))


def _choose_question(count: int, button: DeltaGenerator) -> tuple[int, int]:
    """The seed of the order and the place of the question, with the `button` to the next one."""
    if widget_state.get("question", 1) > count:
        widget_state.put("question", count)
    with st.container(horizontal=True):
        place = whole("question", 1, count, 1, label=f"Question, of {count}", width=120)
        seed = whole("order", width=120)
    button.button(
        "Next question",
        key="next_run",
        disabled=place >= count,
        on_click=widget_state.put,
        args=("question", place + 1),
    )
    return seed, place - 1


def _is_settled(answers: dict[str, bool]) -> bool:
    """Whether the mistake was found, or no try is left."""
    return any(answers.values()) or len(answers) >= TRIES_ALLOWED


def _draw_answer(hidden: Exhibit, fitting: list[Exhibit], key: str) -> None:
    """Draw the list of mistakes; after a wrong answer there is a second try."""
    titles = {exhibit.label: exhibit for exhibit in fitting}
    answers = state_of(Answers).get(key, {})
    picked = st.selectbox(
        "Which mistake is it?",
        list(titles),
        index=None,
        key=f"guess_{key}",
        placeholder="Which mistake is it?",
        label_visibility="collapsed",
    )
    is_new = picked is not None and picked not in answers and not _is_settled(answers)
    if st.button("Answer", key="answer", type="primary", disabled=not is_new) and picked:
        state_of(Answers)[key] = answers | {picked: titles[picked] is hidden}
        redraw()
    if _is_settled(answers):
        st.text("Found." if any(answers.values()) else "Not that one either.")
        st.markdown(f"It is **{hidden.title.lower()}**, exhibit {hidden.number}.")
    elif answers:
        st.text(
            f"Not {next(iter(answers))}. You have a second try: find a measurement whose "
            "number differs from the right one."
        )
