"""A run as it trains: its progress, its speed, its curves, and its attention as it forms.

The page reads the run's folder once a second, or less often if drawing is slow: the browser needs
several times as much CPU time as the server, and on two cores the training has to wait for it.
Nothing here trains or waits, so leaving or reloading the page does not affect the run.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from statistics import median

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.messages import draw_notes, say
from explorer.app.reader_runs import COMES_WITH_THE_APP, SOMEBODY_ELSES, is_recorded, may_change
from explorer.charts.training_curves import (
    CURVES_HEIGHT,
    MOST_POINTS,
    held_out_curves,
    loss_curves,
    one_in,
    points_per_mean,
    spread,
    thinned,
)
from explorer.charts.vega_lite import Spec
from explorer.components.chart import Table, chart
from explorer.components.fragment import SELDOM, fragment, watch
from explorer.runs.cluster import cluster, states_of, status_of
from explorer.runs.run import Run
from explorer.runs.run_differences import differences
from explorer.runs.spec import DAMAGED, TRAINING, WAITING, RunError, RunSpec, Status
from explorer.tasks import Task
from explorer.text import TextError
from explorer.views.training.live_attention import (
    CONTROLS,
    FIGURES,
    draw_attention_in,
    draw_forcing,
    draw_generalisation,
    newest_pass,
)
from explorer.views.training.run_words import (
    STATE_WORDS,
    errors_noted,
    metrics_of,
    progress_words,
    visible_task,
)

EVERY, SLOWER = 1.0, 3.0
"""Seconds between two drawings, and the same where drawing is slow."""
NEW = 10.0
"""Seconds for which a run is looked at as often after its last change as one that trains."""
SLOW = 0.05
"""Seconds of CPU time of a slow drawing."""
LAST = 5
"""The last drawings, whose median time decides; the first is no measure of the others."""
_cpu_times = deque[float](maxlen=LAST)
"""CPU seconds of the last drawings for all readers, since they share the machine."""


def draw_run(run: Run, text: str) -> None:
    """Draw the run on screen, repeatedly while it trains; `text` is the reader's sentence."""
    try:
        status = status_of(run)
    except RunError as error:
        say(str(error))
        return
    every, follows = seconds_between(status), partial(_followed, run)
    with st.container(gap=None):  # so what is below keeps its place
        fragment(every=every, follows=follows)(_draw_now)(run, text)
        if every is None:  # somebody else, another tab or a worker may begin to train it
            watch(follows, EVERY if is_new(run) else SELDOM)


def _followed(run: Run) -> Hashable:
    """What the page is drawn for; a run that trains is drawn without the page."""
    try:
        status = status_of(run)
    except RunError:
        return DAMAGED
    every = seconds_between(status)
    return status.state, every, every or (status.step, is_new(run))


def draw_followed(
    draw: Callable[..., None],
    runs: Sequence[Run],
    every: float,
    *args: object,
    more: Callable[[], Hashable] = lambda: None,
) -> None:
    """Draw these runs, by a clock while one trains; the page follows their states and `more`.

    `draw` gets the runs and these arguments.
    """

    def follows() -> Hashable:
        return states_of(runs), more()

    states = states_of(runs)
    trains = TRAINING in states
    with st.container(gap=None):
        fragment(every=every if trains else None, follows=follows)(draw)(runs, *args)
        if WAITING in states and not trains:
            watch(follows, EVERY if any(map(is_new, runs)) else SELDOM)


def is_new(run: Run) -> bool:
    """Whether something was just asked of the run, so that it is likely to change."""
    try:
        age = time.time() - (run.folder / "status.json").stat().st_mtime
    except OSError:
        return False
    return 0 <= age < NEW


def seconds_between(status: Status) -> float | None:
    """Seconds until the next drawing; None for a run that no process trains now."""
    if status.state != TRAINING:
        return None
    is_slow = len(_cpu_times) == LAST and median(_cpu_times) > SLOW
    return SLOWER if is_slow else EVERY


def _draw_now(run: Run, text: str) -> None:
    start = time.thread_time()
    try:
        spec, status = run.spec, status_of(run)
    except RunError as error:
        say(str(error))
        return
    sentence, head, *buttons = st.columns([*CONTROLS, 1 / 4, 1 / 4, 1 / 4])
    watched, beside = st.columns(FIGURES)
    beside = beside.container(gap="xsmall")
    with beside:
        whose = f" · {COMES_WITH_THE_APP}" if is_recorded(run) else ""
        st.markdown(f"**{run.title}** · {STATE_WORDS[status.state]}{whose}")
        st.progress(status.share, text=progress_words(status))
        if status.message:
            st.text(status.message)
        if refusal := run.refusal():
            say(refusal)
        if not is_recorded(run) and not may_change(run):
            st.text(SOMEBODY_ELSES)
        draw_notes("run")
    if may_change(run):
        _draw_buttons(run, status, buttons)
    try:
        task = visible_task(run)
    except (RunError, TextError) as error:
        say(str(error))
        return
    answer, expected, loss, below = (beside.container(gap="xsmall") for _ in range(4))
    places = sentence, head, answer, watched, expected
    live = draw_attention_in(places, task, run.title, text, partial(newest_pass, run, task))
    _draw_curves(run, spec, status, task, loss, below)
    below.caption(f"Expected after training: {task.expectation}")
    if live is not None:
        with below:
            draw_generalisation(live.losses)
        draw_forcing(task, live.forcing)
    _cpu_times.append(time.thread_time() - start)


def _draw_curves(
    run: Run, spec: RunSpec, status: Status, task: Task, loss: DeltaGenerator, below: DeltaGenerator
) -> None:
    """Draw the loss and, `below` it, the held-out metric so far, on fixed axes."""
    metrics = metrics_of(run)
    losses, values = metrics.losses(), metrics.values()
    points = spread(values)
    guess = math.log(spec.model.vocab_size)
    largest = max((loss for _, loss in losses if math.isfinite(loss)), default=guess)
    top = min(2 * guess, largest)  # the largest loss, unless the training diverges
    curves = loss_curves(status.steps, top, marks=_changes(run, spec))
    with loss:
        _draw_curve("loss_curve", f"Loss of {run.title}", curves, "loss", thinned(losses))
    goal = task.goal if spec.stop_at is None else spec.stop_at
    measure, between = status.measure or "held out", task.measured_between
    curves = held_out_curves(measure, status.steps, goal=goal, domain=between)
    with below:
        if len(losses) > MOST_POINTS:
            st.caption(f"Each point is the mean of up to {points_per_mean(losses)} updates.")
        _draw_curve("held_out_curve", f"Held-out metric of {run.title}", curves, "value", points)
        if len(points) < len(values):
            st.caption(
                f"{len(points)} of {len(values):,} measurements are drawn: "
                f"one in {one_in(values)}, and the last."
            )


def _draw_curve(
    key: str, title: str, spec: Spec, name: str, points: Sequence[tuple[int, float]]
) -> None:
    table: Table = {"step": [step for step, _ in points], name: [value for _, value in points]}
    chart(spec, table=table, height=CURVES_HEIGHT, key=key, title=title)


def _changes(run: Run, spec: RunSpec) -> list[tuple[int, str]]:
    """The settings that were changed while the run trained, with the step of each change."""
    marks = []
    for change in run.changes():
        after = spec.with_hot(change.values)
        marks.append((change.step, ", ".join(differences(spec, after))))
        spec = after
    return marks


def _draw_buttons(run: Run, status: Status, places: Sequence[DeltaGenerator]) -> None:
    first = ("pause", True) if status.is_active else ("resume", status.can_resume)
    commands = first, ("step", status.can_resume), ("stop", status.is_active)
    for place, (command, is_possible) in zip(places, commands, strict=True):
        place.button(
            command.capitalize(),
            key=command,
            on_click=_send_command,
            args=(run, command),
            width="stretch",
            disabled=not is_possible,
            help="One update, then pause" if command == "step" else None,
        )


def _send_command(run: Run, command: str) -> None:
    if not may_change(run):
        return
    with errors_noted("run"):
        former = status_of(run).state
        if command == "stop":
            cluster().stop(run)
            return
        run.command(command)
        if command in ("resume", "step"):
            run.mark(WAITING)
            try:
                cluster().submit(run)
            except (RunError, OSError):
                run.mark(former)
                raise
