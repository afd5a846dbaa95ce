"""Races and sweeps: several runs of one task started at once, and who leads while they train."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from explorer.app import url, widget_state
from explorer.app.messages import say
from explorer.app.notes import draw_notes, keep_note
from explorer.app.panels import expander
from explorer.app.reader_runs import listed_runs, may_change, whose, whose_network
from explorer.catalog import ModelError, in_a_sentence
from explorer.catalog.folders import own_name
from explorer.catalog.open_model import OpenModel, open_entry
from explorer.catalog.parameters import count_parameters
from explorer.catalog.run_index import Maker
from explorer.components.fragment import fragment
from explorer.runs.cluster import cluster
from explorer.runs.differing import what_differs
from explorer.runs.parent import new_head_seed
from explorer.runs.quotas import BYTES_OF_PARAMETER
from explorer.runs.run import Run
from explorer.runs.spec import WAITING, RunError, RunSpec
from explorer.runs.sweep import (
    RACES,
    SETTINGS,
    TUNED_SETTINGS,
    Race,
    by_sweep,
    grid,
    notes_of,
    parsed,
    title_of,
)
from explorer.system import limits
from explorer.tasks import CUSTOM_TASKS, TASKS, stored_tokenizer
from explorer.text import TextError
from explorer.text.literal import literal
from explorer.text.number_format import megabytes, three
from explorer.views.runs.run_comparison import choose_axis, draw_curves, names_of
from explorer.views.runs.run_rows import RunRow, rows_of
from explorer.views.training.run_start import (
    NEW_WEIGHTS,
    OwnText,
    draw_own_text,
    models_to_start_from,
)

LONGEST_VALUES = 400
MOST_VALUES_NAMED = 8
"""Runs of a sweep that are named before its start."""


def draw_sweep_form(start: Callable[[Sequence[RunSpec], str, OwnText], None]) -> None:
    """The runs that the values make are named before the button that has `start` queue them."""
    titles = {name: task.title for name, task in TASKS.items()}
    titles |= {name: kind.title for name, kind in CUSTOM_TASKS.items()}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "Task",
            [*titles],
            format_func=titles.__getitem__,
            key="sweep_task",
            persist_state="session",
            width=280,
        )
        try:
            parent = _draw_parent(str(name))
        except ModelError as error:
            say(str(error))
            return
        swept = TUNED_SETTINGS if parent else SETTINGS
        names = st.multiselect(
            "Settings with several values",
            [*swept],
            ["lora_rank"] if parent else ["lr"],
            format_func=lambda each: swept[each].label,
            key="swept_settings_of_model" if parent else "swept_settings",
            persist_state="session",
        )
    own = (
        draw_own_text(CUSTOM_TASKS[name], parent)
        if name in CUSTOM_TASKS
        else OwnText(parent=parent)
    )
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
                values[setting] = parsed(swept[setting], typed)
        if own is None:
            return
        task = own.task(str(name))
        if not values:
            most = limits.SWEEP_RUNS.in_words(limits.SWEEP_RUNS.most)
            st.caption(f"Every combination of the values is one run; at most {most}.")
            return
        specs = grid(task, values, parent=parent)
    except (RunError, TextError) as error:
        say(str(error))
        return
    named = what_differs(specs)
    more = f" and {len(named) - MOST_VALUES_NAMED} more" if len(named) > MOST_VALUES_NAMED else ""
    st.caption(f"{literal(' · '.join(named[:MOST_VALUES_NAMED]))}{more}")
    if parent:
        st.caption(_stored(parent, specs))
    st.button(
        f"Start {len(specs)} runs",
        key="start_sweep",
        type="primary",
        on_click=start,
        args=(specs, f"{task.name}: {title_of(values)}", own),
    )


def _draw_parent(task: str) -> OpenModel | None:
    """The model that all start from; None for new weights. ModelError where it cannot be opened."""
    models = models_to_start_from(task)
    if not models:
        return None
    options = (NEW_WEIGHTS, *models)
    if widget_state.get("sweep_from") not in options:
        widget_state.put("sweep_from", NEW_WEIGHTS)
    chosen = st.selectbox(
        "Start from", options, key="sweep_from", persist_state="session", width=200
    )
    return open_entry(models[chosen]) if chosen in models else None


def _stored(parent: OpenModel, specs: Sequence[RunSpec]) -> str:
    """How much of the disk the model takes that all start from."""
    size = megabytes(BYTES_OF_PARAMETER * count_parameters(specs[0].model))
    times = len({new_head_seed(parent, spec) for spec in specs})
    often = "once" if times == 1 else f"{times} times, once for each weight seed of its new head"
    return (
        f"All start from {literal(own_name(parent.name))}; its weights, {size}, are stored {often}."
    )


EVERY = 1.0


def draw_races() -> list[Run]:
    """The race on screen, whose runs it gives, above the races that are ready and one's own."""
    cluster().start()
    draw_notes("runs")
    runs = _draw_chosen()
    for place, race in zip(st.columns(len(RACES), gap="medium"), RACES, strict=True):
        with place.container(border=True, height="stretch"):
            _draw_race(race)
    with expander("own_sweep"):
        draw_sweep_form(_start)
    return runs


def _draw_race(race: Race) -> None:
    st.markdown(f"**{race.title}** · {race.task}")
    st.caption(race.says)
    st.button("Start the race", key=f"race_{RACES.index(race)}", on_click=_start_race, args=(race,))


def _start_race(race: Race) -> None:
    try:
        specs = grid(TASKS[race.task], race.values, race.settings)
    except RunError as error:
        keep_note("runs", str(error))
    else:
        _start(specs, race.title, OwnText())


def _start(specs: Sequence[RunSpec], title: str, own: OwnText) -> None:
    """Queue all, and have them on screen; what they are made of is given once for all."""
    notes, whose_all = notes_of(title), Maker(whose(), whose_network())
    try:
        kept = stored_tokenizer(specs[0].task, own.text, own.tokenizer)
        cluster().train_all(specs, own.text, whose_all, notes, kept, own.parent)
    except (RunError, TextError, OSError) as error:
        keep_note("runs", in_a_sentence(error))
    else:
        widget_state.put("sweep", notes.sweep)


def _draw_chosen() -> list[Run]:
    """The race on screen: the one that was started last, or one of the list."""
    sweeps = by_sweep(listed_runs())
    if not sweeps:
        st.markdown("No race yet: start one, and its curves grow here.")
        return []
    asked = widget_state.get("sweep") or url.asked("sweep")
    if asked and asked not in sweeps:
        say("There is no such race in your list of runs; showing the newest.")
    widget_state.put("sweep", asked if asked in sweeps else next(iter(sweeps)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = st.selectbox(
            "Race or sweep",
            [*sweeps],
            format_func=lambda each: _label(sweeps[each]),
            key="sweep",
            width=480,
        )
        axis = choose_axis()
    url.write("sweep", str(key))
    runs = sweeps[str(key)]
    is_live = any(run.status_or_new().is_active for run in runs)
    fragment(every=EVERY if is_live else None)(_draw_live)(runs, axis, is_live)
    return [run for run in runs if run.is_readable()]


def _label(runs: Sequence[Run]) -> str:
    return f"{runs[0].notes().sweep_title} · {runs[0].title} to {runs[-1].title}"


def _draw_live(runs: Sequence[Run], axis: str, was_live: bool) -> None:
    rows = rows_of(runs)
    readable = [row for row in rows if row.spec]
    is_live = any(row.status and row.status.is_active for row in rows)
    names = dict(zip((row.run.name for row in readable), names_of(readable), strict=True))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(leader_words(readable, names))
        if is_live and all(map(may_change, runs)):
            st.button(
                "Stop all", key="stop_all", icon=":material/stop:", on_click=_stop, args=(runs,)
            )
    draw_curves(readable, axis, "race")
    ranked = sorted(readable, key=lambda row: -row.goodness())
    st.dataframe(
        [
            {"settings": names[row.run.name]}
            | {
                column: row.cells()[column]
                for column in (
                    "run",
                    "state",
                    "step",
                    "of",
                    "held out",
                    "best",
                    "metric",
                    "trained",
                )
            }
            for row in ranked
        ],
        hide_index=True,
        key="race_table",
        column_config={
            "settings": st.column_config.TextColumn(width="medium"),
            "step": st.column_config.NumberColumn(format="localized"),
            "of": st.column_config.NumberColumn(format="localized"),
            **{
                name: st.column_config.TextColumn(alignment="right")
                for name in ("held out", "best", "trained")
            },
        },
    )
    if is_live != was_live:
        st.rerun()


def leader_words(rows: Sequence[RunRow], names: Mapping[str, str]) -> str:
    """Which run has the best held-out value so far, and at which step it reached it."""
    trained = (row for row in rows if row.best and row.status and row.status.measured_at)
    ranked = sorted(trained, key=lambda row: -row.goodness())
    if len(ranked) < min(2, len(rows)):
        return "Nobody leads before two runs have been measured on held-out data." + _waiting(
            rows, names
        )
    first = ranked[0]
    assert first.best is not None
    assert first.status is not None
    equal = [row for row in ranked if row.goodness() == first.goodness()]
    reached = f"{first.status.measure} {three(first.best.value)}"
    if len(equal) > 1:
        soonest = min(equal, key=lambda row: row.best.step if row.best else 0)
        at = soonest.best.step if soonest.best else 0
        name = literal(names[soonest.run.name])
        return f"{len(equal)} runs have reached {reached}; **{name}** was first, at step {at:,}."
    is_over = not any(row.status and row.status.is_active for row in rows)
    verb = "is best" if is_over else "leads"
    name = literal(names[first.run.name])
    return f"**{name}** {verb}: {reached} on held-out data at step {first.best.step:,}."


def _waiting(rows: Sequence[RunRow], names: Mapping[str, str]) -> str:
    """Which of them have no worker yet, as where there are more runs than cores."""
    waiting = [
        literal(names[row.run.name]) for row in rows if row.status and row.status.state == WAITING
    ]
    return f" Waiting for a free core: {', '.join(waiting)}." if waiting else ""


def _stop(runs: Sequence[Run]) -> None:
    for run in runs:
        if not may_change(run):
            return
    try:
        for run in runs:
            if run.status_or_new().is_active:
                cluster().stop(run)
    except (RunError, OSError) as error:
        keep_note("runs", in_a_sentence(error))
