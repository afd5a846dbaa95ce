"""Races and sweeps: several runs of one task started at once, and who leads while they train."""

from collections.abc import Mapping, Sequence

import streamlit as st

from explorer.app import url, widget_state
from explorer.app.controls import expander
from explorer.app.messages import draw_notes, keep_note, say
from explorer.app.reader_runs import listed_runs, may_change, whose, whose_network
from explorer.catalog import in_a_sentence
from explorer.catalog.run_index import Maker
from explorer.components.fragment import fragment
from explorer.runs.cluster import cluster
from explorer.runs.run import Run
from explorer.runs.spec import WAITING, RunError, RunSpec
from explorer.runs.sweep import RACES, Race, by_sweep, grid, notes_of
from explorer.tasks import TASKS, stored_tokenizer
from explorer.text import TextError
from explorer.text.labels import literal
from explorer.text.number_format import three
from explorer.views.runs.run_curves import choose_axis, draw_curves, names_of
from explorer.views.runs.run_rows import RunRow, rows_of
from explorer.views.runs.sweep_form import draw_sweep_form
from explorer.views.training.own_text import OwnText

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
