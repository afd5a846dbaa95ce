"""The runs that a reader may see: their own, and what a link names.

Who sees everything has the runs with plain names, and is shown those of all. Anybody else has
those that they made: each of these has a key in its name, and who knows it, by a link, may look
at the run and open its model. Only whose it is, or who sees everything, may do more. A run with a
plain name is found by nobody else: its name is easily guessed.
"""

from pathlib import Path

from explorer.app.reader import network_digest, owner, sees_everything
from explorer.catalog.available_models import RUNS_LISTED, ListedRun
from explorer.catalog.folders import own_name
from explorer.catalog.run_index import HOST, index_of
from explorer.runs.run import Run, newest_runs, no_run_named, run_named
from explorer.system.data_folders import runs_root

SOMEBODY_ELSES = (
    "This run is somebody else's: whoever has its link may look at it and open its model, but "
    "not pause, stop, resume or delete it."
)


def whose() -> str:
    """The owner of what this reader makes."""
    return HOST if sees_everything() else owner()


def whose_network() -> str:
    """The network that it is counted for; who runs the server has none."""
    return "" if sees_everything() else network_digest()


def own_runs() -> list[Run]:
    """The reader's newest runs."""
    return newest_runs(runs_root(), RUNS_LISTED, whose())


def listed_runs() -> list[Run]:
    """The newest runs in the reader's list."""
    return newest_runs(runs_root(), RUNS_LISTED, None if sees_everything() else owner())


def found_run(name: str) -> Run:
    """The run that an address names; RunError where there is none that this reader may see."""
    if own_name(name) == name and not sees_everything():
        raise no_run_named(name)
    return run_named(runs_root(), name)


def may_change(run: Run) -> bool:
    """Whether this reader may command the run, or delete it."""
    return sees_everything() or run.owner == owner()


def is_own(run: Run) -> bool:
    """Whether this reader made it."""
    return run.owner == whose()


def runs_with_models(named: tuple[str, ...]) -> list[ListedRun]:
    """The newest runs in the reader's list, and those of these names that may be seen."""
    root, mine = Path(runs_root()).absolute(), whose()
    there = index_of(root).now()
    found = list(there.newest(None if sees_everything() else mine)[:RUNS_LISTED])
    listed = {each.name for each in found}
    for name in dict.fromkeys(named):
        known = there.by_name.get(name)
        if known and name not in listed and (own_name(name) != name or sees_everything()):
            found.append(known)
    return [ListedRun(str(root), each.name, each.owner == mine) for each in found]
