"""The runs that a reader may see: their own, and those that a link names.

A reader at the server's own machine owns the runs with plain names and sees all others. Other
readers own the runs that they made, which have a key in their names. Whoever knows the key from a
link may look at the run and open its model. Only the owner, or a reader at the server's machine,
may do more. Nobody else can see a run with a plain name, since such names are easily guessed.
Everybody sees the runs that come with the app, and nobody changes them.
"""

from pathlib import Path

from explorer.app import reader
from explorer.app.reader import network_digest, owner
from explorer.catalog.available_models import RUNS_LISTED, ListedRun
from explorer.catalog.folders import own_name
from explorer.catalog.run_index import HOST, Maker, index_of
from explorer.runs.run import Run, newest_runs, no_run_named, run_named
from explorer.system.data_folders import recorded_root, runs_root

COMES_WITH_THE_APP = "comes with the app"
SOMEBODY_ELSES = (
    "This run is somebody else's: whoever has its link may look at it and open its model, but "
    "not pause, stop, resume or delete it."
)


def whose() -> str:
    """The owner of the runs that this reader makes."""
    return HOST if reader.is_local() else owner()


def maker() -> Maker:
    """Their owner with the network that they are counted for; none at the server's own machine."""
    return Maker(HOST) if reader.is_local() else Maker(owner(), network_digest())


def own_runs() -> list[Run]:
    """The reader's newest runs."""
    return newest_runs(runs_root(), RUNS_LISTED, whose())


def listed_runs() -> list[Run]:
    """The newest runs in the reader's list, then those that come with the app."""
    own = newest_runs(runs_root(), RUNS_LISTED, None if reader.is_local() else owner())
    return [*own, *recorded_runs()]


def recorded_runs() -> list[Run]:
    """The runs that come with the app."""
    return newest_runs(recorded_root(), None)


def is_recorded(run: Run) -> bool:
    """Whether the run comes with the app."""
    return run.folder.parent == recorded_root().absolute()


def find_run(name: str) -> Run:
    """The run of this name; RunError if there is none that this reader may see."""
    if name in index_of(recorded_root()).now().by_name:
        return run_named(recorded_root(), name)
    if own_name(name) == name and not reader.is_local():
        raise no_run_named(name)
    return run_named(runs_root(), name)


def may_change(run: Run) -> bool:
    """Whether this reader may command the run, or delete it."""
    return not is_recorded(run) and (reader.is_local() or run.owner == owner())


def is_own(run: Run) -> bool:
    """Whether this reader made the run."""
    return not is_recorded(run) and run.owner == whose()


def runs_with_models(names: tuple[str, ...]) -> list[ListedRun]:
    """The newest runs in the reader's list, and those of these names that the reader may see."""
    root, mine = Path(runs_root()).absolute(), whose()
    index = index_of(root).now()
    runs = list(index.newest(None if reader.is_local() else mine)[:RUNS_LISTED])
    listed = {run.name for run in runs}
    for name in dict.fromkeys(names):
        run = index.by_name.get(name)
        if run and name not in listed and (own_name(name) != name or reader.is_local()):
            runs.append(run)
    return [ListedRun(str(root), run.name, run.owner == mine) for run in runs]
