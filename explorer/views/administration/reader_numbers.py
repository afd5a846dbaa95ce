"""What each reader is called on the Administration page: a number, and nothing of theirs."""

from __future__ import annotations

from collections.abc import Iterable

from explorer.app.throttle import at_work
from explorer.catalog import uploads
from explorer.catalog.run_index import HOST, index_of
from explorer.system.data_folders import runs_root, uploads_root

HOST_WORDS, NOBODY_WORDS = "whoever runs the server", "nobody"
Numbers = dict[str | None, str]


def all_numbers() -> Numbers:
    """By whose oldest run is the oldest; then those who only uploaded, or only read."""
    runs = (run.owner for run in reversed(index_of(runs_root()).now().everybodys))
    kept = (each.whose.owner or None for each in uploads.stored(uploads_root()))
    return numbered([*runs, *kept, *(each.owner for each in at_work())])


def numbered(owners: Iterable[str | None]) -> Numbers:
    """In this order."""
    names: Numbers = {HOST: HOST_WORDS, None: NOBODY_WORDS}
    for owner in owners:
        names.setdefault(owner, f"reader {len(names) - 1}")
    return names
