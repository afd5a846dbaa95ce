"""Training runs of one task side by side: their settings, and the result of each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from explorer.app.controls import expander
from explorer.charts.run_charts import parallel_runs
from explorer.charts.theme import palette
from explorer.components.chart import plotly_chart
from explorer.runs.run import Run
from explorer.runs.run_differences import settings_of, what_differs
from explorer.runs.spec import RunError, RunSpec
from explorer.text.labels import literal

FEWEST_RUNS = 2
MOST_SETTINGS = 7
ALWAYS = ("lr", "batch_size")
"""Settings that have an axis even where all runs have the same."""


@dataclass(frozen=True)
class ComparedRun:
    """A run with a measurement on held-out data, the last one."""

    name: str
    spec: RunSpec
    measure: str
    value: float

    @property
    def settings(self) -> dict[str, object]:
        return settings_of(self.spec)


def draw_run_comparison(runs: Sequence[Run]) -> None:
    """An expander, where at least two runs of a task were measured."""
    with expander("run_comparison") as panel:
        if not panel.open:
            return
        measured = measured_runs(runs)
        counts = Counter(each.spec.task for each in measured)
        tasks = [task for task, count in counts.most_common() if count >= FEWEST_RUNS]
        if not tasks:
            st.caption("Two runs of one task that were measured can be compared here: select both.")
            return
        task = st.selectbox("Task", tasks, key="compared_task", width=240)
        same = [each for each in measured if each.spec.task == task]
        measure, results = same[0].measure or "held out", [run.value for run in same]
        columns = {**comparison_columns(same), measure: results}
        names = [run.name for run in same]
        figure = parallel_runs(names, columns, results, palette(st.context.theme.type))
        title = f"Runs of {task}"
        plotly_chart(figure, key="runs_compared", title=title, table={"run": names, **columns})
        st.caption(
            f"{len(same)} runs of {literal(task)}. The line of each goes through its settings to "
            f"its last {measure} on held-out data: the larger that is, the stronger its colour. "
            "Settings that all runs share are left out, except the learning rate and the batch "
            f"size; at most {MOST_SETTINGS} are drawn."
        )


def measured_runs(runs: Sequence[Run]) -> list[ComparedRun]:
    """Those that can be read and were measured at least once."""
    found = []
    for run in runs:
        try:
            spec, status = run.spec, run.status()
        except RunError:
            continue
        if status.value is not None:
            found.append(ComparedRun(run.title, spec, status.measure, status.value))
    return found


def comparison_columns(runs: Sequence[ComparedRun]) -> dict[str, list[float] | list[str]]:
    """The settings that differ between the runs, and a value of each run."""
    every = [run.settings for run in runs]
    fields = dict.fromkeys(name for settings in every for name in settings)
    differing = [name for name in fields if len({str(each.get(name)) for each in every}) > 1]
    names = [*ALWAYS, *(name for name in differing if name not in ALWAYS)]
    return {
        name: _values([settings.get(name) for settings in every]) for name in names[:MOST_SETTINGS]
    }


def _values(values: Sequence[object]) -> list[float] | list[str]:
    """Numbers as they are; where one is none, all as texts."""
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return numbers if len(numbers) == len(values) else [str(value) for value in values]


def runs_code(folder: Path, titles: list[str]) -> None:
    runs = [Run(folder / title) for title in titles]
    names = what_differs([run.spec for run in runs], titles)
    curves = {name: run.metrics().values() for name, run in zip(names, runs, strict=True)}
    print({name: curve[-1:] for name, curve in curves.items()})
