"""What becomes of the files of a download: converted, copied from the hub's cache, and checked."""

import shutil
from pathlib import Path

from explorer.catalog import ModelError
from explorer.catalog.model_files import files_that_open, shards_in
from models.loading.inspection import check_inspection, inspect_folder
from models.loading.safe_files import INDEX, CheckpointError, shown


def convert(gguf: Path, folder: Path) -> None:
    """Write a GGUF file as a checkpoint folder."""
    from models.loading.gguf_conversion import convert_gguf

    try:
        convert_gguf(gguf, folder)
    except CheckpointError as error:
        raise ModelError(f"The downloaded file cannot be converted: {error}") from error


def copy_model(kept: Path, folder: Path) -> None:
    """What opens a model of the hub's cache, which may hold more, as a folder of its own."""
    names = {path.name for path in kept.iterdir()}
    index = kept / INDEX
    shards = shards_in(index.read_text("utf-8", errors="replace")) if INDEX in names else set()
    folder.mkdir()
    for name in files_that_open(names, shards, shown(kept.name)):
        shutil.copyfile(kept / name, folder / name)


def check(folder: Path, title: str) -> None:
    """ModelError unless the folder holds a model that opens, by its config and its headers."""
    try:
        check_inspection(inspect_folder(folder))
    except CheckpointError as error:
        raise ModelError(f"{title} cannot be opened: {error}") from error
