"""What a run will take, said before it starts: parameters, memory, steps a second."""

import streamlit as st

from explorer.runs.run_size import TIMED, expected_speed, training_size
from explorer.runs.spec import RunSpec
from explorer.tasks import Task
from explorer.text.number_format import megabytes, three
from explorer.views.training.run_words import duration


def draw_size(task: Task, spec: RunSpec) -> None:
    """One line: what each part is, and where the speed is from, stands in its help."""
    size = training_size(task, spec)
    line = st.empty()
    trained = spec.trained_parameters
    said = f"{size.parameters:,} parameters"
    said = said if trained == size.parameters else f"{trained:,} of {said} are trained"
    memory = f"{megabytes(size.memory)} of memory"
    line.caption(f"{said} · {memory} · …")
    speed = expected_speed(task, spec)
    seconds = spec.training.steps / speed.steps_per_second
    line.caption(
        f"{said} · {memory} · about {three(speed.steps_per_second)} steps/s, {duration(seconds)}",
        help=(
            f"**Memory**: weights {megabytes(size.weights)}, gradients "
            f"{megabytes(size.gradients)}, optimizer {megabytes(size.optimizer)}, and at most "
            f"{megabytes(size.activations)} for the forward and backward pass of one batch. Python "
            "and torch themselves come on top.\n\n**Speed**: "
            + (
                f"forward and backward pass of this model, measured here on {TIMED} batches; "
                if speed.is_timed
                else f"estimated from {three(size.operations / 1e9)} billion operations a step and "
                "the speed of a model of 256 dimensions, measured here; "
            )
            + "updates, measurements and snapshots come on top."
        ),
    )
