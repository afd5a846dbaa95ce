"""The table of runs: search, sort, choose, annotate, compare, delete and restore them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import address, reader, widget_state
from explorer.app.choosing import switch_page
from explorer.app.controls import chosen_rows, one_of, text_field
from explorer.app.messages import draw_notes, say
from explorer.app.reader_runs import find_run, listed_runs, may_change, whose
from explorer.app.session import redraw, state_of
from explorer.catalog.folders import own_name
from explorer.catalog.run_index import ASIDE, index_of
from explorer.runs.cluster import cluster
from explorer.runs.deleting import set_aside_of
from explorer.runs.quotas import sizes_of
from explorer.runs.run import Run, restore
from explorer.runs.spec import LONGEST_NOTE, MOST_TAGS, RunError
from explorer.system import limits
from explorer.system.data_folders import runs_root
from explorer.views.runs.run_comparison import CURVE_AXES, draw_curves, draw_run_comparison
from explorer.views.runs.run_rows import SORTS, draw_cells, matching_rows, rows_of
from explorer.views.training.live_run import draw_followed
from explorer.views.training.run_chooser import draw_run_links
from explorer.views.training.run_words import duration, errors_noted

TABLE_EVERY = 2.0
MOST_COMPARED = 32
MOST_UNDONE = 3
NONE_YET = "No run yet: start one on the page Training, or a race under **Races and sweeps**."


@dataclass
class ChosenRuns:
    """The runs that are chosen in the table; None until the address is read."""

    names: tuple[str, ...] | None = None


def draw_table(controls: DeltaGenerator) -> list[Run]:
    """Draw this reader's runs, the actions on the chosen ones, and their curves.

    What searches and sorts them stands in the row of `controls`. Returns the runs that have curves:
    the chosen ones, or else the first of the table.
    """
    runs = {run.name: run for run in listed_runs()}
    chosen = _chosen(runs)
    _draw_undo()
    draw_notes("runs")
    if not runs:
        st.markdown(NONE_YET)
        return []
    with controls:
        hint = "Filter the runs"
        search = text_field("find", placeholder=hint, width=180, label_visibility="collapsed")
        sort = one_of("sort", [*SORTS], as_list=True, width=220)
    rows = matching_rows(rows_of([*runs.values()]), search, sort)
    if not rows:
        st.markdown("No run has all these words.")
        return []
    listed = [row.run for row in rows]
    draw_followed(_draw_rows, listed, TABLE_EVERY, chosen, more=lambda: state_of(ChosenRuns).names)
    picked = [runs[name] for name in chosen if name in runs]
    if picked:
        _draw_actions(picked)
    with controls:
        axis = one_of("curves_over", [*CURVE_AXES])
    few = picked or listed[:1]
    draw_followed(_draw_curves, few, TABLE_EVERY, axis)
    words = "" if picked else " · Select one run to open or annotate it, or several to compare."
    index, most = index_of(runs_root()).now(), limits.RUNS_BYTES_OF_READER
    sizes = sizes_of(runs_root(), index)
    mine = [run for run in (*index.everybodys, *index.aside) if run.owner == whose()]
    used = most.in_words(sum(sizes[run.name] for run in mine))
    count, days = limits.RUNS_KEPT.in_words(len(mine)), limits.RUNS_DAYS
    lifetime = "" if reader.is_local() else f" · each is kept for {days.in_words(days.most)}"
    st.caption(f"{count} · {used} of {most.in_words(most.most)} on disk{lifetime}{words}")
    if len(picked) > 1:
        draw_run_comparison(picked)
    return [run for run in few if run.is_readable()]


def _chosen(runs: dict[str, Run]) -> tuple[str, ...]:
    """The names of the chosen runs; at first those in the address that exist."""
    selection = state_of(ChosenRuns)
    if selection.names is None:
        selection.names = ()
        for name in dict.fromkeys(address.values_of("runs")[:MOST_COMPARED]):
            try:
                runs.setdefault(name, find_run(name))
                selection.names += (name,)
            except RunError as error:
                say(str(error))
    absent = [name for name in selection.names if name not in runs]
    for name in absent:  # only a link names them
        with suppress(RunError):
            runs[name] = find_run(name)
    names = tuple(name for name in selection.names if name in runs)
    if names:
        address.write("runs", [*names])
    else:
        address.remove("runs")
    return names


def _draw_rows(runs: Sequence[Run], chosen: tuple[str, ...]) -> None:
    rows = rows_of(runs)
    names = [run.name for run in runs]
    # Rows are chosen by their place, so another order makes another table.
    key = f"runs_{sha256(' '.join(names).encode()).hexdigest()[:12]}"

    def pick() -> None:
        places = chosen_rows(widget_state.get(key), len(names))[:MOST_COMPARED]
        state_of(ChosenRuns).names = tuple(names[place] for place in places)

    draw_cells(
        [row.cells() for row in rows],
        key,
        on_select=pick,
        selection_mode="multi-row",
        selection_default={"selection": {"rows": [i for i, n in enumerate(names) if n in chosen]}},
    )


def _draw_undo() -> None:
    """Draw the names of the runs deleted last, each with a button that restores it."""
    names = [run.name.removeprefix(ASIDE) for run in set_aside_of(runs_root(), whose())]
    if not names:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        time, days = duration(limits.UNDO_SECONDS.most), limits.RUNS_DAYS
        outdated = "" if reader.is_local() else f", or kept for {days.in_words(days.most)}"
        st.caption(f"Deleted in the last {time}{outdated}; can be brought back:", width="content")
        for at, name in enumerate(names[:MOST_UNDONE]):
            label = f"Undo: {own_name(name)}"
            st.button(label, key=f"undo_{at}", on_click=_restore, args=([name],))
        if len(names) > 1:
            label = f"Undo all {len(names)}"
            st.button(label, key="undo_all", on_click=_restore, args=(names,))


def _restore(names: Sequence[str]) -> None:
    """Restore those that are this reader's; a note says which can no longer be restored."""
    mine = {run.name for run in index_of(runs_root()).now().aside if run.owner == whose()}
    with errors_noted("runs"):
        for name in names:
            if f"{ASIDE}{name}" in mine:
                restore(runs_root(), name)


def _draw_actions(picked: Sequence[Run]) -> None:
    may_change_all = all(map(may_change, picked))
    with st.container(horizontal=True, vertical_alignment="center"):
        if len(picked) == 1:
            (run,) = picked
            put, args = widget_state.put, ("run", run.name)
            if st.button("Open on Training", key="open_training", on_click=put, args=args):
                switch_page("training", run=run.name)
            draw_run_links(run)
        if may_change_all:
            with st.popover("Tags and note", icon=":material/sell:", key="tags_and_note"):
                _draw_notes(picked)
            what = picked[0].title if len(picked) == 1 else f"these {len(picked)} runs"
            st.button(
                f"Delete {what}",
                key="delete_runs",
                icon=":material/delete:",
                on_click=_delete,
                args=(picked,),
            )


def _draw_notes(picked: Sequence[Run]) -> None:
    """Draw a form for the tags of all chosen runs, and the note if it is one run."""
    before = [run.notes() for run in picked]
    shared = [tag for tag in before[0].tags if all(tag in notes.tags for notes in before)]
    tag_options = sorted({tag for run in listed_runs() for tag in run.notes().tags} | {*shared})
    key = sha256(" ".join(run.name for run in picked).encode()).hexdigest()[:12]
    with st.form(f"notes_{key}", border=False):
        tags = st.multiselect(
            "Tags", tag_options, shared, accept_new_options=True, max_selections=MOST_TAGS
        )
        note = None
        if len(picked) == 1:
            note = st.text_area("Note", before[0].note, max_chars=LONGEST_NOTE)
        if not st.form_submit_button("Save"):
            return
    with errors_noted("runs"):
        for run, old in zip(picked, before, strict=True):
            others = [tag for tag in old.tags if tag not in shared]
            new = old.replace(tags=(*others, *map(str, tags)))
            run.note(new if note is None else new.replace(note=str(note)))
    redraw()


def _delete(picked: Sequence[Run]) -> None:
    if not all(map(may_change, picked)):
        return
    with errors_noted("runs"):
        for run in picked:
            cluster().delete(run)
    state_of(ChosenRuns).names = ()
    if widget_state.get("run") in {run.name for run in picked}:
        widget_state.put("run", None)


def _draw_curves(picked: Sequence[Run], axis: str) -> None:
    draw_curves(rows_of(picked), axis, "compared")
