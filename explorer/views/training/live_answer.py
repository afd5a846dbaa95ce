"""What the newest weights of a run make of the reader's sentence, and how well they generalise."""

from typing import Any

import streamlit as st
import torch

from explorer.analysis.generalisation import MOST_EXAMPLES, Generalisation, generalisation
from explorer.analysis.teacher_forcing import TeacherForcing, teacher_forcing
from explorer.app.controls import expander
from explorer.catalog.open_model import OpenModel
from explorer.inference.forward_pass import ForwardPass
from explorer.inference.model_inputs import ids_of
from explorer.runs.spec import RunSpec, is_step
from explorer.tasks import Task
from explorer.text.labels import literal
from explorer.text.number_format import three
from explorer.views.generation.teacher_forcing_view import LEGEND, draw_board, summary
from models.training import Batch

GUESSES = 3


def draw_answer_now(task: Task, forward: ForwardPass) -> None:
    """The answer in a line, and the right one where the task knows it."""
    answer = forward.answer
    if answer.guesses:
        best = answer.guesses[:GUESSES]
        said = " · ".join(f"**{literal(each.label)}** {three(each.probability)}" for each in best)
        st.markdown(f"{'Next token' if answer.kind == 'next' else 'Answer'}: {said}")
        return
    right = task.answer_text(forward.source)
    if not right:
        st.markdown(f"Answer: **{literal(answer.text)}**")
    elif answer.text == right:
        st.markdown(f"Answer: **{literal(answer.text)}** · correct")
    else:
        st.markdown(f"Answer: **{literal(answer.text)}** · expected: {literal(right)}")


def both_ways(opened: OpenModel, task: Task, forward: ForwardPass) -> TeacherForcing | None:
    """The reference answer fed, and the model's own; None where no answer is known."""
    answer = [token.id for token in task.answer(forward.source)]
    if not forward.source or not answer or len(answer) > opened.config.max_len:
        return None
    target = torch.tensor([forward.target[0].id, *answer])
    return teacher_forcing(opened.model, ids_of([forward.source]), target, given=1)


def draw_both_ways(task: Task, found: TeacherForcing | None) -> None:
    """Teacher forcing beside free running, in a panel that opens."""
    if found is None:
        return
    with expander("live_forcing") as panel:
        if panel.open:
            label = task.tokenizer.label
            draw_board(found, label, key="live_forcing_board")
            st.caption(LEGEND)
            st.text(summary(found, label))


def generalises(opened: OpenModel, task: Task, spec: RunSpec) -> tuple[int, Generalisation] | None:
    """The step of the weights, and their two losses; None where a task keeps no batch apart."""
    held_out: Batch | None = getattr(task, "held_out_batch", None)
    step: Any = opened.run.get("steps")
    if held_out is None or not is_step(step):
        return None
    return step, generalisation(opened.model, task.batch(step, spec.training), held_out)


def draw_generalisation(found: tuple[int, Generalisation] | None) -> None:
    if found is None:
        return
    step, losses = found
    st.caption(
        f"Generalisation gap at step {step:,}: **{three(losses.gap)}** nats, "
        f"{three(losses.held_out)} on held-out data, {three(losses.training)} in training.",
        help="Losses of the newest weights, without dropout or label smoothing: on at most "
        f"{MOST_EXAMPLES} held-out examples, and on as many of the next batch.",
    )
