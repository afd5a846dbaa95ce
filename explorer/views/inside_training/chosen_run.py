"""The chosen run of Inside training: its settings, its task, and measurements of its snapshots."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import address, reader_runs, streamlit_patches, widget_state
from explorer.app.choosing import switch_page
from explorer.app.messages import say
from explorer.catalog import ModelError
from explorer.catalog.available_models import brought_model
from explorer.catalog.opened_model import OpenModel, open_entry
from explorer.charts.figure_data import WINDOW
from explorer.charts.training_curves import lines_over_steps
from explorer.components.chart import chart
from explorer.runs.retraining import training_at
from explorer.runs.run import Run
from explorer.runs.spec import RunError, RunSpec
from explorer.system.limits import INSIDE_BYTES
from explorer.tasks import Task
from explorer.tasks.task import check_fit
from explorer.text import TextError
from explorer.views.shared.measurement import measurements
from explorer.views.shared.training_snapshots import Identity, identity_of, open_snapshot
from explorer.views.training.run_chooser import choose_run
from explorer.views.training.run_words import visible_task
from models.config import TrainConfig
from models.training import Batch

ROWS = 64
"""Held-out examples that every measurement uses."""
NO_RUN = "Choose a run above. Where there is none yet, train a model on the page Training."
NO_RUN_OF_TASK = "Nothing here was trained on this task yet: train a model on it first."
NO_SNAPSHOT = "This run has no snapshots yet: the first is saved when its training begins."
TOO_LARGE_TO_MEASURE = (
    "This takes too long with a model of this size: choose the run of a smaller model."
)
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class InsideRun:
    """A run with snapshots; every result is cached with the model of the `first` one."""

    run: Run
    spec: RunSpec
    task: Task
    snapshots: dict[int, Path]
    first: OpenModel

    @property
    def steps(self) -> list[int]:
        return [*self.snapshots]

    @property
    def parameters(self) -> int:
        return self.first.model.n_parameters

    @cached_property
    def held_out(self) -> Batch:
        """The first held-out examples, the same for every snapshot."""
        return self.task.held_out_batch.rows(slice(ROWS))

    @property
    def held_out_words(self) -> str:
        """Which examples these are, for a caption."""
        return f"the first {len(self.held_out.labels)} held-out examples"

    @property
    def cost_of_held_out(self) -> int:
        """Multiplications of a forward pass over these examples."""
        return sum(ids.numel() for ids in self.held_out.inputs) * self.parameters

    @cached_property
    def tokens(self) -> int:
        """Tokens of a batch, padding included."""
        return sum(ids.numel() for ids in self.task.batch(0, self.spec.training).inputs)

    @property
    def cost_of_step(self) -> int:
        """Multiplications of a training step: a forward pass, and a backward pass at twice that."""
        return 3 * self.tokens * self.parameters

    def opened(self, step: int) -> OpenModel:
        """The model of a snapshot; a ModelError says why it cannot be opened."""
        return open_snapshot(self.first, self.snapshots[step])

    def training(self, step: int) -> TrainConfig:
        """The settings of the update after this step; some may change while a run trains."""
        return training_at(self.run, self.spec, step)

    def identity(self, step: int) -> Identity:
        """The key under which results of a snapshot are cached."""
        return identity_of(self.snapshots[step])


def choose_inside_run(place: DeltaGenerator) -> InsideRun | None:
    """The run that is chosen at `place`, or None and a sentence where it has no snapshots.

    The default is the run of the chosen model, the reader's newest, or one of the app's; with a
    `run_task` in the address, as in a lesson, it is the newest of that task.
    """
    wanted = address.value_of("run_task")
    is_new = not widget_state.get("run") or streamlit_patches.came_back()
    if is_new and not address.value_of("run"):
        runs = [*reader_runs.own_runs(), *reader_runs.recorded_runs()]
        if wanted:
            runs = [run for run in runs if run.is_readable() and run.spec.task == wanted]
        model = address.value_of("model")
        for default in sorted(runs, key=lambda run: run.name != model)[:1]:
            widget_state.put("run", default.name)
            address.write("run", default.name)
    with place:
        run = choose_run()
    if run is None and wanted:
        st.text(NO_RUN_OF_TASK)
        if st.button("Train a model on this task", key="train_first", type="primary"):
            switch_page("training", task=wanted)
        return None
    if run is None:
        st.text(NO_RUN)
        return None
    try:
        spec, task = run.spec, visible_task(run)
        snapshots = dict(run.snapshots())
        if not snapshots:
            st.text(NO_SNAPSHOT)
            return None
        first = open_entry(brought_model(next(iter(snapshots.values()))))
        check_fit(task, first.config)
    except (RunError, TextError, ModelError) as error:
        say(str(error))
        return None
    return InsideRun(run, spec, task, snapshots, first)


def has_room(needed: int) -> bool:
    """Whether a view that needs this many bytes is computed here; if not, say so."""
    if not INSIDE_BYTES.allows(needed):
        st.text(INSIDE_BYTES.refusal(needed))
    return INSIDE_BYTES.allows(needed)


def of_snapshots(
    chosen: InsideRun,
    name: str,
    make: Callable[[int], Result],
    *,
    cost: int,
    doing: str,
    of: Hashable = "",
) -> list[Result] | None:
    """The result of `make` for each snapshot's step, cached; None until all of them are there.

    `cost` is that of one step; `of` is whatever else the results depend on.
    """
    steps = chosen.steps
    return measurements(
        chosen.first,
        name,
        [(name, of, chosen.identity(step)) for step in steps],
        lambda at, _: make(steps[at]),
        cost=cost * len(steps),
        doing=doing,
        too_long=TOO_LARGE_TO_MEASURE,
    )


def draw_over_steps(
    chosen: InsideRun, curves: Mapping[str, Sequence[float]], unit: str, title: str, key: str
) -> None:
    """Draw a curve for each name: its value at every snapshot."""
    rows = [
        (step, name, value)
        for name, values in curves.items()
        for step, value in zip(chosen.steps, values, strict=True)
    ]
    chart(lines_over_steps(rows, unit), height=WINDOW, key=key, title=title)
