"""Races and sweeps: several runs of one task started at once, and which leads as they train."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from explorer.app import address, widget_state
from explorer.app.controls import expander, one_of
from explorer.app.messages import draw_notes, say
from explorer.app.reader_runs import listed_runs, maker, may_change
from explorer.catalog import ModelError
from explorer.catalog.folders import own_name
from explorer.catalog.parameters import count_parameters
from explorer.runs.cluster import cluster, is_active
from explorer.runs.finetuning import new_head_seed
from explorer.runs.metrics import higher_is_better
from explorer.runs.quotas import BYTES_OF_PARAMETER
from explorer.runs.run import Run
from explorer.runs.run_differences import what_differs
from explorer.runs.spec import DONE, WAITING, RunError, RunSpec
from explorer.runs.sweep import (
    RACES,
    SETTINGS,
    TUNED_SETTINGS,
    Race,
    by_sweep,
    grid,
    notes_of,
    parse_values,
    title_of,
)
from explorer.system import limits
from explorer.tasks import CUSTOM_TASKS, TASKS, CustomTask, Task, stored_tokenizer, text_for
from explorer.text import TextError
from explorer.text.number_format import megabytes, three
from explorer.text.visible_text import literal, literal_sentence
from explorer.views.runs.run_comparison import CURVE_AXES, draw_curves, names_of
from explorer.views.runs.run_rows import RunRow, draw_cells, rows_of
from explorer.views.training.live_attention import draw_newest
from explorer.views.training.live_run import EVERY, draw_followed
from explorer.views.training.run_start import OwnText, draw_own_text, draw_start_from
from explorer.views.training.run_words import errors_noted, first_words, metrics_of

LONGEST_VALUES = 400
MOST_NAMED = 8
"""Runs of a sweep that are named before its start."""


def _draw_sweep_form() -> None:
    """Draw the settings of a sweep, the runs that it makes, and a button that starts them."""
    kinds: dict[str, Task | type[CustomTask]] = {**TASKS, **CUSTOM_TASKS}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "Task",
            [*kinds],
            format_func=lambda name: kinds[name].title,
            key="sweep_task",
            persist_state="session",
            width=280,
        )
        try:
            parent = draw_start_from(name, key="sweep_from")
        except ModelError as error:
            say(str(error))
            return
        swept = TUNED_SETTINGS if parent else SETTINGS
        names = st.multiselect(
            "Settings with several values",
            [*swept],
            ["lora_rank"] if parent else ["lr"],
            format_func=lambda name: swept[name].label,
            key="swept_settings_of_model" if parent else "swept_settings",
            persist_state="session",
        )
    own = draw_own_text(name, parent)
    values = dict[str, Sequence[Any]]()
    try:
        for setting in names:
            typed = st.text_input(
                swept[setting].label,
                key=f"swept_{setting}",
                placeholder=", ".join(swept[setting].options) or "Numbers, separated by commas",
                max_chars=LONGEST_VALUES,
                persist_state="session",
            )
            if typed:
                values[setting] = parse_values(swept[setting], typed)
        if own is None:
            return
        task = own.task(name)
        if not values:
            most = limits.SWEEP_RUNS.in_words(limits.SWEEP_RUNS.most)
            st.caption(f"Every combination of the values is one run; at most {most}.")
            return
        specs = grid(task, values, parent=parent)
    except (RunError, TextError) as error:
        say(str(error))
        return
    st.caption(literal_sentence(first_words(what_differs(specs), MOST_NAMED, " · ")))
    if parent:
        size = megabytes(BYTES_OF_PARAMETER * count_parameters(specs[0].model))
        times = len({new_head_seed(parent, spec) for spec in specs})
        often = (
            "once" if times == 1 else f"{times} times, once for each weight seed of its new head"
        )
        start = literal(own_name(parent.name))
        st.caption(f"All start from {start}; its weights, {size}, are stored {often}.")
    st.button(
        f"Start {len(specs)} runs",
        key="start_sweep",
        type="primary",
        on_click=_start,
        args=(specs, f"{task.name}: {title_of(values)}", own),
    )


NO_LEADER = "No run leads before two runs have been measured on held-out data."
COMPARED, RACE_CURVES = 2, 220
"""Runs whose map and answer are drawn side by side; the height of all curves in pixels."""
RACE_COLUMNS = ("run", "state", "step", "held out", "best", "metric", "trained")


def draw_races() -> list[Run]:
    """Draw the chosen race, the ready races and the sweep form; return the chosen race's runs."""
    cluster().start()
    draw_notes("runs")
    runs = _draw_chosen_race()
    for place, race in zip(st.columns(len(RACES), gap="medium"), RACES, strict=True):
        with place.container(border=True, height="stretch"):
            st.markdown(f"**{race.title}** · {race.task}")
            st.caption(race.about)
            key = f"race_{RACES.index(race)}"
            st.button("Start the race", key=key, on_click=_start_race, args=(race,))
    with expander("own_sweep"):
        _draw_sweep_form()
    return runs


def _start_race(race: Race) -> None:
    with errors_noted("runs"):
        _start(race.specs, race.title, OwnText(text_for(race.task)))


def _start(specs: Sequence[RunSpec], title: str, own: OwnText) -> None:
    """Queue all runs and put them on screen; their text, tokenizer and model are stored once."""
    notes = notes_of(title)
    with errors_noted("runs"):
        tokenizer = stored_tokenizer(specs[0].task, own.text, own.tokenizer)
        cluster().train_all(specs, own.text, maker(), notes, tokenizer, own.parent)
        widget_state.put("sweep", notes.sweep)


def _draw_chosen_race() -> list[Run]:
    """Draw the race that was started last, or the one chosen in the list."""
    sweeps = by_sweep(listed_runs())
    if not sweeps:
        st.markdown("No race yet: start one, and its curves grow here.")
        return []
    requested = widget_state.get("sweep") or address.value_of("sweep")
    if requested and requested not in sweeps:
        say("There is no such race in your list of runs; showing the newest.")
    widget_state.put("sweep", requested if requested in sweeps else next(iter(sweeps)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        labels = {name: _label(runs) for name, runs in sweeps.items()}
        key = st.selectbox(
            "Race or sweep", [*sweeps], format_func=labels.__getitem__, key="sweep", width=480
        )
        axis = one_of("curves_over", [*CURVE_AXES])
    address.write("sweep", str(key))
    runs = sweeps[str(key)]
    draw_followed(_draw_live, runs, EVERY, axis)
    return [run for run in runs if run.is_readable()]


def _label(runs: Sequence[Run]) -> str:
    return f"{runs[0].notes().sweep_title} · {runs[0].title} to {runs[-1].title}"


def _draw_live(runs: Sequence[Run], axis: str) -> None:
    rows = rows_of(runs)
    readable = [row for row in rows if row.spec]
    is_live = any(row.status.is_active for row in rows)
    names = dict(zip((row.run.name for row in readable), names_of(readable), strict=True))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(leader_words(readable, names))
        if is_live and all(map(may_change, runs)):
            st.button(
                "Stop all", key="stop_all", icon=":material/stop:", on_click=_stop, args=(runs,)
            )
    draw_curves(readable, axis, "race", RACE_CURVES)
    for at, place in enumerate(st.columns(COMPARED, gap="medium")[: len(readable)]):
        with place:
            draw_newest(readable[at].run, f"race_map_{at}", names[readable[at].run.name])
    table = [
        {"settings": names[row.run.name]} | {name: row.cells()[name] for name in RACE_COLUMNS}
        for row in sorted(readable, key=lambda row: -row.goodness())
    ]
    draw_cells(table, key="race_table")


def leader_words(rows: Sequence[RunRow], names: Mapping[str, str]) -> str:
    """Which run has the best held-out value so far, and at which step it reached it.

    While they train, runs are compared at the last step that all of them have reached. Of equal
    values that of the fewest steps is named, unless several runs took as few.
    """
    trained = (row for row in rows if row.best and row.status.measured_at)
    ranked = sorted(trained, key=lambda row: -row.goodness())
    if not ranked or len(ranked) < min(2, len(rows)):
        waiting = [literal(names[row.run.name]) for row in rows if row.status.state == WAITING]
        queue = f" Waiting for their turn: {', '.join(waiting)}." if waiting else ""
        return f"{NO_LEADER}{queue}"
    is_over = not any(row.status.is_active for row in rows)
    if not is_over and len(ranked) == len(rows) > 1:
        return _leader_at_equal_steps(rows, names)
    first = ranked[0]
    assert first.best is not None
    equal = [row for row in ranked if row.goodness() == first.goodness()]
    reached = f"{first.status.measure} {three(first.best.value)}"
    if len(equal) > 1:
        steps = [row.best.step if row.best else 0 for row in equal]
        at, quickest = min(steps), steps.count(min(steps))
        name = f"**{literal(names[equal[steps.index(at)].run.name])}**"
        if quickest > 1:
            name = f"{quickest} of them"
        first_to = f"{name} took the fewest steps, {at:,}"
        if quickest == len(equal):
            first_to = f"each took {at:,} steps"
        return f"{len(equal)} runs have reached {reached}; {first_to}."
    verb = "is best" if is_over else "leads"
    if len(ranked) == 1:
        verb = "is the only run"
    elif len(ranked) < len(rows):
        verb = f"{verb} of {len(ranked)} measured runs"
    name = literal(names[first.run.name])
    return f"**{name}** {verb}: {reached} on held-out data at step {first.best.step:,}."


def _leader_at_equal_steps(rows: Sequence[RunRow], names: Mapping[str, str]) -> str:
    """Which run has the best held-out value at the last step at which all were measured.

    Runs that ended early are left out.
    """
    measured = {
        row.run.name: {at.step: at.value for at in metrics_of(row.run).rows if at.value is not None}
        for row in rows
        if row.status.is_active or row.status.state == DONE
    }
    steps = set.intersection(*map(set, measured.values()))
    if not steps:
        return NO_LEADER
    step, measure = max(steps), rows[0].status.measure
    values = {name: by_step[step] for name, by_step in measured.items()}
    best = (max if higher_is_better(measure) else min)(values.values())
    first = [literal(names[name]) for name, value in values.items() if value == best]
    who = f"**{first[0]}** leads" if len(first) == 1 else f"{len(first)} of {len(values)} lead"
    return f"{who} at step {step:,}: {measure} {three(best)} on held-out data."


def _stop(runs: Sequence[Run]) -> None:
    with errors_noted("runs"):
        for run in runs if all(map(may_change, runs)) else ():
            if is_active(run):
                cluster().stop(run)
