"""A run as it goes on: how far, how fast, its curves, and its attention as it forms.

It looks at the run's folder once a second, and less often on a machine that looks slowly:
drawing takes the browser several times as long as it takes us, and where there are two
cores the training pays for it. Nothing here trains or waits: a page that is reloaded, left
or closed changes nothing, and comes back to the same run.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from statistics import median

import streamlit as st

from explorer.app.messages import say
from explorer.charts.training_curves import HEIGHT, MOST_POINTS, held_out, loss, thinned, together
from explorer.components.alone import alone
from explorer.runs.cluster import cluster
from explorer.runs.metrics import Metrics
from explorer.runs.run import Run, RunError
from explorer.runs.spec import WAITING, RunSpec, Status
from explorer.tasks import Task, task_of
from explorer.text import TextError
from explorer.views.training import run_words
from explorer.views.training.live_attention import watch
from explorer.views.training.run_status import status_of

EVERY, SELDOM = 1.0, 3.0
"""Seconds from one look to the next, and where looks are slow."""
SLOW = 0.05
"""Seconds on a core that a slow look takes here."""
LAST = 5
"""Looks that say whether looks are slow: the first of all is no measure of those to come."""


def show(run: Run) -> None:
    """The run on screen; it follows by itself while there is something to follow."""
    try:
        every = _every(status_of(run))
    except RunError as error:
        say(str(error))
        return
    alone(every=every)(_look)(run, every)


def _every(status: Status) -> float | None:
    """Seconds until the next look; None where there is nothing left to follow."""
    if not status.is_active:
        return None
    took = _took()
    return SELDOM if len(took) == LAST and median(took) > SLOW else EVERY


@st.cache_resource
def _took() -> deque[float]:
    """What anybody's last looks took, in seconds on a core: it is the machine that is slow."""
    return deque(maxlen=LAST)


def _look(run: Run, every: float | None) -> None:
    begun = time.thread_time()
    try:
        spec, status = run.spec, status_of(run)
    except RunError as error:
        say(str(error))
        return
    if _every(status) != every:
        st.rerun()  # the whole page, which decides anew whether to go on looking
    _buttons(run, status)
    st.progress(status.share, text=run_words.progress(status))
    try:
        task = task_of(spec.task, run.text())
    except (RunError, TextError) as error:
        say(str(error))
        return
    _curves(run, spec, status, task)
    watch(run, task)
    _took().append(time.thread_time() - begun)


def _curves(run: Run, spec: RunSpec, status: Status, task: Task) -> None:
    """The loss and the held-out figure so far, on axes that stand still."""
    metrics = _metrics(run)
    losses, values = metrics.losses(), metrics.values()
    left, right = st.columns(2)
    left.vega_lite_chart(
        _table("loss", thinned(losses)),
        loss(status.steps, math.log(spec.model.vocab_size)),
        height=HEIGHT,
        width="stretch",
        key="loss_curve",
    )
    right.vega_lite_chart(
        _table("value", values[-MOST_POINTS:]),
        held_out(
            status.measure or "held out",
            status.steps,
            goal=task.goal if spec.stop_at is None else spec.stop_at,
            domain=task.measured_between,
        ),
        height=HEIGHT,
        width="stretch",
        key="held_out_curve",
    )
    if len(losses) > MOST_POINTS:
        left.caption(f"Each point is the mean of up to {together(losses)} updates.")
    if len(values) > MOST_POINTS:
        right.caption(f"The last {MOST_POINTS} of {len(values):,} measurements.")


def _table(name: str, points: Sequence[tuple[int, float]]) -> dict[str, list[float]]:
    return {"step": [step for step, _ in points], name: [value for _, value in points]}


def _buttons(run: Run, status: Status) -> None:
    state, pause, step, stop = st.columns([5, 2, 2, 2], vertical_alignment="center")
    state.markdown(f"**{run.name}** · {run_words.SAID[status.state]}")
    if status.message:
        state.text(status.message)
    if status.is_active:
        pause.button("Pause", key="pause", on_click=_tell, args=(run, "pause"), width="stretch")
    else:
        pause.button(
            "Resume",
            key="resume",
            on_click=_tell,
            args=(run, "resume"),
            width="stretch",
            disabled=not status.can_resume,
        )
    step.button(
        "Step",
        key="step",
        on_click=_tell,
        args=(run, "step"),
        width="stretch",
        disabled=not status.can_resume,
        help="One update, then pause",
    )
    stop.button(
        "Stop",
        key="stop",
        on_click=_tell,
        args=(run, "stop"),
        width="stretch",
        disabled=not status.is_active,
    )
    if fault := st.session_state.pop("_run_fault", None):
        say(fault)


def _tell(run: Run, word: str) -> None:
    try:
        former = run.status().state
        run.command(word)
        if word in ("resume", "step"):
            run.mark(WAITING)
            try:
                cluster().submit(run)
            except (RunError, OSError):
                run.mark(former)
                raise
    except (RunError, OSError) as error:
        st.session_state["_run_fault"] = str(error)


def _metrics(run: Run) -> Metrics:
    """Kept for the session, so that only what is new is read."""
    kept = st.session_state.get("_metrics")
    if not isinstance(kept, Metrics) or kept.path != run.folder / "metrics.jsonl":
        kept = Metrics(run.folder / "metrics.jsonl")
        st.session_state["_metrics"] = kept
    return kept.update()
