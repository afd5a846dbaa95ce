"""Several runs compared: their curves in one chart, their settings and their results."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from explorer.analysis.attention_sinks import SINK_WEIGHT
from explorer.app.controls import expander
from explorer.app.throttle import turn
from explorer.catalog import ModelError
from explorer.catalog.parameters import count_parameters
from explorer.charts.figure_data import WINDOW
from explorer.charts.run_charts import aligned, overlaid_curves, parallel_runs
from explorer.charts.theme import palette
from explorer.components.chart import chart, plotly_chart
from explorer.runs.metrics import MetricsRow
from explorer.runs.run import Run
from explorer.runs.run_differences import settings_of, what_differs
from explorer.runs.spec import RunError, RunSpec
from explorer.system.cooperative import interruptible
from explorer.text.checked_text import ForwardPassError, TextError
from explorer.text.visible_text import literal
from explorer.views.runs.run_rows import RunRow, rows_of
from explorer.views.shared.training_snapshots import identity_of
from explorer.views.training.live_attention import largest_sink
from explorer.views.training.run_words import metrics_of, visible_task

FEWEST_RUNS = 2
MOST_SETTINGS = 7
ALWAYS = ("lr", "batch_size")
"""Settings that have an axis even if all runs have the same value."""
CURVE_AXES = {"Steps": "step", "Seconds": "seconds"}
"""The x axes of the curves."""
MOST_RUNS, MOST_PARAMETERS = 8, 2 * 10**7
"""Of all runs whose sinks are drawn, since every snapshot is opened and reads a text."""
SINKS = (
    "Weight on first token: of the head with the largest sink weight, at every snapshot, on the "
    f"first example of the task. From {SINK_WEIGHT} on the head has a sink."
)


def names_of(rows: Sequence[RunRow]) -> list[str]:
    """Names that tell these runs apart; all of them can be read."""
    return what_differs([row.spec for row in rows if row.spec], [row.run.title for row in rows])


def draw_curves(rows: Sequence[RunRow], axis: str, key: str, height: int | str = WINDOW) -> None:
    """Draw the runs' loss, their held-out metric if all have the same one, and their sinks."""
    readable = [row for row in rows if row.spec]
    names = names_of(readable)
    runs = {name: row.run for name, row in zip(names, readable, strict=True)}
    by_name = {name: metrics_of(run).rows for name, run in runs.items()}
    ends = [row.status.steps if row.status.is_active else row.status.step for row in readable]
    steps = max(ends, default=0)
    measures = [*dict.fromkeys(row.status.measure for row in readable)]
    models = [row.spec.model for row in readable if row.spec]
    has_sinks = any(model.sink_logit or model.gated_attention for model in models)
    has_sinks &= len(models) <= MOST_RUNS and sum(map(count_parameters, models)) <= MOST_PARAMETERS
    left, right, *more = st.columns(2 + has_sinks, gap="medium")
    with left:
        _draw(by_name, axis, "loss", "loss", f"{key}_loss", steps, height)
    with right:
        if len([*filter(None, measures)]) > 1:
            st.caption(f"Different held-out metrics have no common axis: {_list(measures)}.")
        else:
            title = f"{next(iter(measures), '')}, held out".removeprefix(", ")
            _draw(by_name, axis, "value", title, f"{key}_held_out", steps, height)
    for place in more:
        sinks = {name: _sinks(run) for name, run in runs.items()}
        with place:
            _draw(sinks, axis, "value", "weight on first token", f"{key}_sinks", steps, height)
        st.caption(SINKS)


def _sinks(run: Run) -> list[MetricsRow]:
    """The rows of a run with its largest sink weight at each readable snapshot as their value."""
    sinks = dict[int, float | None]()
    with turn(), suppress(TextError, RunError):
        text = visible_task(run).example
        for step, folder in interruptible(run.snapshots()):
            with suppress(ModelError, ForwardPassError):
                sinks[step] = largest_sink(*identity_of(folder), text)
    return [replace(row, value=sinks.get(row.step)) for row in metrics_of(run).rows]


def _draw(
    by_name: Mapping[str, Sequence[MetricsRow]],
    axis: str,
    number: str,
    title: str,
    key: str,
    steps: int,
    height: int | str,
) -> None:
    """Draw each run's curve of the loss or the held-out value, as far as it is recorded.

    The axis has room for all steps of the longest run that trains, so that nothing moves.
    """
    place = attrgetter(CURVE_AXES[axis], number)
    curves = {
        name: [(float(x), float(y)) for x, y in map(place, rows) if None not in (x, y)]
        for name, rows in by_name.items()
    }
    is_stepped = number == "value"
    table = aligned(curves, "last" if is_stepped else "mean")
    if not table["x"]:
        st.caption(f"The curves of the {title} appear with the first steps.")
        return
    theme, names = palette(st.context.theme.type), [*curves]
    highest = max((value for value in table["value"] if math.isfinite(value)), default=0.0)
    spec = overlaid_curves(
        names,
        CURVE_AXES[axis],
        title,
        theme,
        is_stepped=is_stepped,
        x_end=steps if axis == "Steps" else 10 * math.ceil(max(table["x"]) / 10),
        y_end=1.0 if is_stepped and 0 <= highest <= 1 else highest,
    )
    chart(spec, table=table, height=height, key=key, title=title)


def _list(names: Iterable[str]) -> str:
    return ", ".join(literal(name) for name in names if name)


class RunResult(NamedTuple):
    """A run with its last measurement on held-out data."""

    name: str
    spec: RunSpec
    measure: str
    value: float


def draw_run_comparison(runs: Sequence[Run]) -> None:
    """Draw an expander that compares the runs of a task, if at least two were measured."""
    with expander("run_comparison") as panel:
        if not panel.open:
            return
        results = measured_runs(runs)
        counts = Counter(result.spec.task for result in results)
        tasks = [task for task, count in counts.most_common() if count >= FEWEST_RUNS]
        if not tasks:
            st.caption("Two runs of one task that were measured can be compared here: select both.")
            return
        task = st.selectbox("Task", tasks, key="compared_task", width=240)
        same = [result for result in results if result.spec.task == task]
        measure, values = same[0].measure or "held out", [result.value for result in same]
        columns = {**comparison_columns([result.spec for result in same]), measure: values}
        names = [result.name for result in same]
        figure = parallel_runs(names, columns, values, palette(st.context.theme.type))
        title = f"Runs of {task}"
        plotly_chart(figure, key="runs_compared", title=title, table={"run": names, **columns})
        st.caption(
            f"{len(same)} runs of {literal(task)}. The line of each goes through its settings to "
            f"its last {measure} on held-out data: the larger that is, the stronger its colour. "
            "Settings that all runs share are left out, except the learning rate and the batch "
            f"size; at most {MOST_SETTINGS} are drawn."
        )


def measured_runs(runs: Sequence[Run]) -> list[RunResult]:
    """The last result of each run that can be read and was measured at least once."""
    return [
        RunResult(row.run.title, row.spec, row.status.measure, row.status.value)
        for row in rows_of(runs)
        if row.spec and row.status.value is not None
    ]


def comparison_columns(specs: Sequence[RunSpec]) -> dict[str, list[float] | list[str]]:
    """The settings that differ between the runs, and a value of each run."""
    all_settings = [settings_of(spec) for spec in specs]
    fields = dict.fromkeys(name for settings in all_settings for name in settings)
    differing = [
        name for name in fields if len({str(settings.get(name)) for settings in all_settings}) > 1
    ]
    return {
        name: _values([settings.get(name) for settings in all_settings])
        for name in [*ALWAYS, *(name for name in differing if name not in ALWAYS)][:MOST_SETTINGS]
    }


def _values(values: Sequence[object]) -> list[float] | list[str]:
    """The values as they are if all are numbers, or else all as texts."""
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return numbers if len(numbers) == len(values) else [str(value) for value in values]


def runs_code(folder: Path, titles: list[str]) -> None:
    runs = [Run(folder / title) for title in titles]
    names = what_differs([run.spec for run in runs], titles)
    curves = {name: run.metrics().values() for name, run in zip(names, runs, strict=True)}
    print({name: curve[-1:] for name, curve in curves.items()})
