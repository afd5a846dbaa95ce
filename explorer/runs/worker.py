"""The one training loop behind the page, the command line and the cluster.

`advance` is a generator: the caller may show its progress, and stops it by closing it. It follows
the commands in the folder's control file, saves its state, and resumes from it with the same bits.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import torch
import torch.distributed

from explorer.catalog import in_a_sentence
from explorer.catalog.pass_budget import steps_between_layers
from explorer.catalog.run_index import SNAPSHOTS, step_folders
from explorer.runs.finetuning import initial_model
from explorer.runs.hot_changes import apply_request, spec_at
from explorer.runs.recorder import Diverged, RunRecorder, Tell, TrainingProgress
from explorer.runs.retraining import at_saved_step
from explorer.runs.run import Run
from explorer.runs.spec import (
    ACTIVE,
    DONE,
    FAILED,
    HOT,
    INTERRUPTED,
    PAUSED,
    STOPPED,
    WAITING,
    RunError,
    RunSpec,
)
from explorer.runs.watchdog import MEASURING, STEP, Watchdog, bounded_memory, is_of_memory
from explorer.system import cooperative, limits
from explorer.system.atomic_files import Lock, sweep_files
from explorer.system.cooperative import Breakable, BrokenOff
from explorer.tasks import Task
from explorer.text.number_format import three
from models import Transformer, distributed
from models.loading.checkpoint import finish_all
from models.training import Report, TrainState, train

NICENESS = 1
PATIENCE = 5.0
"""Seconds to wait for another worker to unlock the run."""

AT_ONCE = {"pause": PAUSED, "stop": STOPPED, "leave": INTERRUPTED}
"""The commands that break a step or a measurement off."""
ENDINGS = AT_ONCE | {"step": PAUSED}

TURNS = 20
"""Turns in which a run of a race trains; after each, those that are behind it train next."""

END, ON, ANEW = 0.0, 1.0, 2.0
"""The messages to the processes that train together, before each update."""


def train_to_end(folder: Path | str, race: Sequence[Path | str] = ()) -> str:
    """Train the run in `folder` within the limits of a run; returns its last state.

    The runs in the folders of its `race` take turns, so that their curves grow together: while
    this run is not at its end, the one of them that is furthest behind trains next.
    """
    lower_priority()
    run, runs = Run(folder), [*map(Run, race)]
    if runs and run.status_as_written().state not in ACTIVE:
        return run.status().state  # it ended in a turn that the task of another gave it
    while True:
        own = [] if run.has_worker() else [run]
        turn = min([*own, *_waiting(runs)] or [run], key=lambda run: run.status_or_new().step)
        has_trained = False
        try:
            for _ in advance(turn.folder, is_bounded=True, race=runs):
                has_trained = True
        except RunError:
            if turn is run:
                raise  # another's is in its own status
        if turn is not run and not has_trained and not turn.has_worker():
            runs.remove(turn)
        # As written: a worker that is just leaving the run makes it look interrupted.
        if not runs or run.status_as_written().state not in ACTIVE:
            return run.status().state


def _waiting(race: Sequence[Run]) -> list[Run]:
    """Those that wait for their turn, or for a worker."""
    return [run for run in race if run.status_or_new().state == WAITING and not run.has_worker()]


def advance(
    folder: Path | str,
    leave: Callable[[], bool] = lambda: False,
    *,
    is_bounded: bool = False,
    race: Sequence[Run] = (),
    tell: Tell = lambda read, rows: None,
) -> Iterator[TrainingProgress]:
    """Train the run in `folder` from its saved state, with a report after each update.

    It ends when the run is done, at the commands pause and stop, and when `leave()` is true. It
    does nothing if another living worker trains the run. An error is written into the run's
    status and raised as RunError. With `is_bounded` the limits of a run hold: a limit stops the
    run, and its status has the sentence. With a `race` the run gives up its worker after a turn if
    another of these runs is behind it. A long measurement tells how many of its rows are read.
    """
    run = Run(folder)
    spec = run.spec
    lock = Lock(run.folder / "lock")
    if not lock.acquire(PATIENCE):
        return
    with lock:
        if why := run.stop_reason():
            run.end_as(STOPPED, why)
            return
        try:
            for part in ("", "state", "latest", SNAPSHOTS):  # a killed worker may have left more
                finish_all(run.folder / part)
            sweep_files(run.folder)
            with (
                Watchdog(run) if is_bounded else nullcontext() as watchdog,
                bounded_memory() if is_bounded else nullcontext(),
            ):
                yield from _train(run, spec, leave, watchdog, tell, race)
        except BrokenOff as broken:
            run.end_as(broken.state, "")
        except (ArithmeticError, MemoryError, OSError, RuntimeError, ValueError) as error:
            if is_bounded and is_of_memory(error):
                run.end_as(STOPPED, limits.RUN_MEMORY.refusal())
                return
            message = _why_ended(run, error)
            with contextlib.suppress(OSError):
                run.end_as(FAILED, message)
            raise RunError(message) from error


def lower_priority() -> None:
    """Give this process one torch thread, and a lower priority than the server's."""
    torch.set_num_threads(1)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)


def _train(
    run: Run,
    spec: RunSpec,
    leave: Callable[[], bool],
    watchdog: Watchdog | None,
    tell: Tell,
    race: Sequence[Run],
) -> Iterator[TrainingProgress]:
    command = _Command(run)

    def ending_at_once() -> str | None:
        return INTERRUPTED if leave() else AT_ONCE.get(command.newest())

    # Processes that train together end together, after an update.
    breakable = Breakable(ending_at_once if distributed.world_size() == 1 else lambda: None)
    begin = watchdog.begin if watchdog else lambda what: None
    with cooperative.run_in_thread(breakable):
        task = run.task()
        model, state = saved_or_untrained(run, spec)
    broadcast([END])  # now every process has read the files that the first one will replace
    recorder = RunRecorder(run, spec, task, model, state, tell)
    try:
        begin(MEASURING)
        with cooperative.run_in_thread(breakable):
            recorder.begin()
        ending = ending_at_once()
        why = ""

        def is_at_a_limit() -> bool:
            nonlocal why
            why = watchdog.after_step(recorder.seconds, recorder.reserve) if watchdog else ""
            return bool(why)

        if ending is None and is_at_a_limit():
            ending = STOPPED
        updates, first = _Updates(run, spec, task, model, state), state.step
        turn = max(1, spec.training.steps // TURNS)
        while ending is None:
            begin(STEP)
            try:
                with updates.broken_off_by(breakable):
                    report = updates.next()
                begin(MEASURING)
                if report is None:
                    ending = DONE
                    break
                recorder.health.after(report)
                with cooperative.run_in_thread(breakable):
                    progress = recorder.record(report, updates.spec.evaluate_every)
            except BrokenOff as broken:
                ending = broken.state
                break
            yield progress
            if recorder.has_reached_target or report.step >= spec.training.steps:
                ending = DONE
            else:
                ending = INTERRUPTED if leave() else ENDINGS.get(command.newest())
                if ending is None and is_at_a_limit():
                    ending = STOPPED
                is_turn_over = (report.step - first) % turn == 0
                if ending is None and is_turn_over:
                    steps = [other.status_or_new().step for other in _waiting(race)]
                    if min(steps, default=report.step) < report.step:
                        ending = WAITING
        if ending == DONE and not recorder.is_good():
            raise Diverged("The training diverged: the last update ruined the weights")
        tell_the_others(END, spec)
    except GeneratorExit:
        tell_the_others(END, spec)
        recorder.end(INTERRUPTED)
        raise
    except BaseException:
        recorder.metrics.close()
        raise
    if ending == DONE and recorder.has_reached_target:
        status = recorder.status
        why = f"Reached {status.measure} {three(status.value or 0.0)} on {status.held_out}."
    recorder.end(ending, why)


def device() -> torch.device:
    """The device for training: each process has an accelerator of its own, if there are any."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if accelerator is None:
        return torch.device("cpu")
    return torch.device(accelerator.type, distributed.rank() % torch.accelerator.device_count())


def saved_or_untrained(run: Run, spec: RunSpec) -> tuple[Transformer, TrainState]:
    """The newest complete state of the run, or an untrained model if it has no state.

    A run whose states are damaged or lost does not start again: that would overwrite it.
    """
    if saved := at_saved_step(run, spec, device()):
        return saved.model, saved.state
    if states := step_folders(run.folder / "state"):
        raise RunError(
            f"its state at step {states[-1][0]:,} is damaged, so it cannot resume; its weights and "
            "metrics are kept."
        )
    if run.status_or_new().step > 0 or any(row.step > 0 for row in run.metrics().rows):
        raise RunError(
            "its state is missing, so it cannot resume; its weights and metrics are kept."
        )
    model = initial_model(run.folder, spec).to(device())
    return model, TrainState.fresh(model, spec.training)


def tell_the_others(what: float, spec: RunSpec) -> None:
    """Tell the other processes to end, to go on, or to begin anew with these settings."""
    broadcast([what, *(getattr(spec.training, name) for name in HOT)])


def broadcast(values: Sequence[float]) -> list[float]:
    """The values of process 0, in all processes that train together; all pass equally many."""
    tensor = torch.tensor(values, dtype=torch.float64)
    if distributed.world_size() > 1:
        torch.distributed.broadcast(tensor, src=0)
    return tensor.tolist()


class _Updates:
    """The updates of a run, each with the settings that are in force for it."""

    def __init__(
        self, run: Run, spec: RunSpec, task: Task, model: Transformer, state: TrainState
    ) -> None:
        self._run, self._own, self._task = run, spec, task
        self._model, self._state = model, state
        self._begin()

    def next(self) -> Report | None:
        """The report of the next update; None after the last."""
        step = self._state.step
        is_anew = apply_request(self._run.folder, self._own, step) or step in self._changed_at
        if is_anew:
            self._begin()
        tell_the_others(ANEW if is_anew else ON, self.spec)
        return next(self._updates, None)

    @contextmanager
    def broken_off_by(self, breakable: Breakable) -> Iterator[None]:
        """Within it, an update is broken off between two layers or iterations of Muon; never one
        of several processes, whose others would wait.
        """
        if next(self._model.parameters()).device.type != "cpu":
            yield
            return
        steps = steps_between_layers(self._model, self._state.optimizer)
        with cooperative.run_in_thread(breakable), steps:
            yield

    def _begin(self) -> None:
        """Go on from here with the settings that are in force."""
        changes = self._run.changes()
        self._changed_at = {change.step for change in changes}
        self.spec = spec_at(self._own, changes, self._state.step)
        training = self.spec.training
        batch = partial(self._task.batch, training=training)
        self._updates = train(self._model, batch, training, self._state)


class _Command:
    """The last command in the control file, which is read again only when it changes."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._path = run.folder / "control.json"
        self._last_stamp, self._word = self._stamp(), run.last_command()

    def newest(self) -> str:
        stamp = self._stamp()
        if stamp != self._last_stamp:
            self._last_stamp, self._word = stamp, self._run.last_command()
        return self._word

    def _stamp(self) -> tuple[int, int]:
        try:
            status = self._path.stat()
        except OSError:
            return 0, 0
        return status.st_ino, status.st_mtime_ns


def _why_ended(run: Run, error: Exception) -> str:
    """The sentence of an error, and after a training diverged what the reader can do."""
    if isinstance(error, Diverged):
        states = step_folders(run.folder / "state")
        saved = f"the model of step {states[-1][0]:,} is kept, " if states else ""
        return f"{error}; {saved}and a lower learning rate may help."
    lines = in_a_sentence(error).strip().splitlines() or [type(error).__name__]
    return f"The training ended with an error: {lines[0][:300]}"
