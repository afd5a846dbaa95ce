"""The rows of the table of runs: read together, searched and sorted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import streamlit as st

from explorer.app.reader_runs import COMES_WITH_THE_APP, is_own, is_recorded, may_change
from explorer.catalog.run_index import index_of
from explorer.runs.cluster import Queued, cluster, status_of
from explorer.runs.metrics import Best, best_value, higher_is_better
from explorer.runs.quotas import bytes_of, sizes_of
from explorer.runs.run import Run
from explorer.runs.run_differences import changes, setting_in_words
from explorer.runs.spec import DAMAGED, WAITING, RunError, RunNotes, RunSpec, Status
from explorer.system import limits
from explorer.system.data_folders import runs_root
from explorer.text.number_format import three
from explorer.views.shared.tables import table
from explorer.views.training.run_words import duration

UNREAD = Status(DAMAGED)


@dataclass(frozen=True)
class RunRow:
    """A run in the table; one that cannot be read has a `fault` and no spec."""

    run: Run
    notes: RunNotes
    size: int
    spec: RunSpec | None = None
    status: Status = UNREAD
    best: Best | None = None
    place: int = 0
    """Its place in the queue, from 1; 0 if it is not queued."""
    fault: str = ""

    def cells(self) -> dict[str, object]:
        """Its cells, by column."""
        status, is_read = self.status, not self.fault
        queued = f"queued, {ordinal(self.place)} in line" if self.place else ""
        cells: dict[str, object] = {
            "run": self.run.title,
            "changed settings": self.fault or self.changed(),
            "state": queued or status.state,
            "step": f"{status.step:,} of {status.steps:,}" if is_read else "",
            "held out": None if status.value is None else three(status.value),
            "best": None if self.best is None else three(self.best.value),
            "metric": status.measure,
            "trained": duration(status.seconds) if is_read else "",
            "on disk": limits.RUN_BYTES.in_words(self.size),
            "tags": list(self.notes.tags),
            "race or sweep": self.notes.sweep_title,
            "note": self.notes.note,
        }
        if is_own(self.run):
            return cells
        is_ours = is_recorded(self.run)
        return cells | {"whose": COMES_WITH_THE_APP if is_ours else (self.run.owner or "")[:6]}

    def changed(self) -> str:
        """The settings that differ from its task's defaults, and those changed during training."""
        if self.spec is None:
            return ""
        changed_later = [
            f"{setting_in_words(field, value)} from step {change.step:,} on"
            for change in self.run.changes()
            for field, value in change.values.items()
        ]
        return ", ".join([*changes(self.spec), *changed_later])

    def has(self, words: Sequence[str]) -> bool:
        """Whether all these words occur in its cells."""
        text = " ".join(str(cell) for cell in self.cells().values()).lower()
        return all(word in text for word in words)

    def goodness(self) -> float:
        """A number that is larger for a better held-out value of the same metric."""
        if self.best is None:
            return float("-inf")
        return self.best.value if higher_is_better(self.status.measure) else -self.best.value


def rows_of(runs: Sequence[Run]) -> list[RunRow]:
    """The rows of these runs; the scheduler and the folder of runs are read once."""
    sizes = sizes_of(runs_root(), index_of(runs_root()).now())
    queue = {name: at for at, name in enumerate(cluster().waiting(), 1)}
    queued = cache(cluster().queued)
    return [_row(run, sizes.get(run.name) or bytes_of(run.folder), queue, queued) for run in runs]


def _row(run: Run, size: int, queue: dict[str, int], queued: Queued) -> RunRow:
    notes = run.notes() if may_change(run) else RunNotes()  # a link shows the run, not its notes
    try:
        spec, status = run.spec, status_of(run, queued)
    except RunError as error:
        return RunRow(run, notes, size, fault=str(error))
    place = queue.get(run.name, 0) if status.state == WAITING else 0
    return RunRow(run, notes, size, spec, status, best_value(run.folder, status.measure), place)


SORTS: dict[str, Callable[[RunRow], Any]] = {
    "Newest first": lambda row: 0,  # rows come in this order
    # Different metrics cannot be compared.
    "Best held-out value": lambda row: ("~" if row.fault else row.status.measure, -row.goodness()),
    "Most steps": lambda row: -row.status.step,
    "Longest training": lambda row: -row.status.seconds,
    "Largest on disk": lambda row: -row.size,
}
"""By name, what rows are sorted by."""


def matching_rows(rows: Sequence[RunRow], search: str, sort: str) -> list[RunRow]:
    """The rows that have all the words, in this order; among equals, the newest first."""
    words = search.lower().split()
    return sorted((row for row in rows if row.has(words)), key=SORTS[sort])


COLUMNS_IF_SET = ("tags", "race or sweep", "note")


def draw_cells(rows: Sequence[dict[str, object]], key: str, **how: Any) -> None:
    """Draw the cells of several runs as a table, without columns in which none wrote anything."""
    empty = {name for name in COLUMNS_IF_SET if not any(row.get(name) for row in rows)}
    rows = [{name: cell for name, cell in row.items() if name not in empty} for row in rows]
    kinds = st.column_config
    wide = dict.fromkeys(("settings", "changed settings"), kinds.TextColumn(width="medium"))
    table(
        rows,
        right=("step", "held out", "best", "trained", "on disk"),
        config={**wide, "tags": kinds.ListColumn()},
        key=key,
        most_rows=12,
        **how,
    )


def ordinal(place: int) -> str:
    """1st, 2nd, 3rd, 11th."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{'th' if place % 100 in (11, 12, 13) else ending}"
