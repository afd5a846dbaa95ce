"""The newest weights of a run, finished or not, as an opened model."""

from pathlib import Path

from explorer.catalog import ModelError
from explorer.catalog.open_model import OpenModel, opened_from
from explorer.runs.run import Run


def open_folder(folder: Path) -> OpenModel:
    """The model in a checkpoint folder, or the newest one in a run's folder.

    It is read anew: weights of a running training are soon replaced. ModelError
    says in a sentence why there is nothing to open.
    """
    folder = Path(folder).absolute()
    return opened_from(newest_in(folder), folder.name)


def newest_in(folder: Path) -> Path:
    """The checkpoint folder of the newest weights of a run; any other folder as it is."""
    if not (folder / "spec.json").is_file():
        return folder
    run = Run(folder)
    newest = run.checkpoint() or run.latest()
    if newest is None:
        raise ModelError(f"The run {folder.absolute().name} has no weights yet.")
    return newest
