"""What each reader is called on the Administration page: a number, and nothing of theirs."""

from collections.abc import Iterable

from explorer.app.throttle import at_work
from explorer.catalog import uploads
from explorer.catalog.run_index import HOST, index_of
from explorer.system.data_folders import runs_root, uploads_root

OPERATOR, NOBODY = "operator", "nobody"
Numbers = dict[str | None, str]


def all_numbers() -> Numbers:
    """In the order of their oldest runs; then those who only uploaded, or only read."""
    runs = (run.owner for run in reversed(index_of(runs_root()).now().everybodys))
    stored = (upload.whose.owner or None for upload in uploads.stored(uploads_root()))
    return numbered([*runs, *stored, *(run.owner for run in at_work())])


def numbered(owners: Iterable[str | None]) -> Numbers:
    """Numbers for these readers, in this order."""
    names: Numbers = {HOST: OPERATOR, None: NOBODY}
    for owner in owners:
        names.setdefault(owner, f"reader {len(names) - 1}")
    return names
