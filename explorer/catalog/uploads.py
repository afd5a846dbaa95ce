"""Uploaded models: each is kept in a folder named by its contents, the oldest make room.

Of what is uploaded, only the files that open a model are kept, under the name of their folder.
Nothing is opened here; the folder is then read like any other.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from explorer.catalog import ModelError
from explorer.catalog.folders import (
    UPLOAD,
    is_checkpoint,
    model_name,
    systems_root,
    uploads_root,
)
from explorer.catalog.model_files import files_that_open, shards_in
from models.loading.gguf_header import GGUF
from models.loading.memory import available_memory
from models.loading.safe_files import CONFIG, INDEX, LARGEST, shown
from models.loading.weight_files import ENDING, FOREIGN, PICKLED

RECEIVING = ".receiving-"
LONGEST_RECEIVING = 3600
"""Seconds after which no process can still be copying."""
MEGABYTE = 1_000_000
USUAL_UPLOAD, LARGEST_UPLOAD = 200 * MEGABYTE, 2_000 * MEGABYTE
"""Bytes of one upload at most: of anybody's, and of one at a machine that has the memory."""
COPIES = 4
"""An upload is in memory as it came, in 32 bits when it is opened, and something has to be left."""
KEPT = 4
"""All uploads on disk together take at most as much as this many of the largest."""
MOST_FILES = 40
LONGEST_NAME, LONGEST_TITLE = 120, 60


class KeptUpload(NamedTuple):
    """The folder of an uploaded model, and what else was uploaded, as it lay beside it."""

    folder: Path
    skipped: tuple[str, ...] = ()


def largest_upload(is_local: bool) -> int:
    """Bytes that one upload may have; more than usual only by who sits at this machine.

    There it is a share of the memory that is free now. Elsewhere many may upload at once.
    """
    room = available_memory() // COPIES // MEGABYTE * MEGABYTE if is_local else 0
    return min(max(USUAL_UPLOAD, room), LARGEST_UPLOAD)


def keep_upload(
    files: Mapping[str, BinaryIO],
    sizes: Mapping[str, int],
    root: Path,
    largest: int = USUAL_UPLOAD,
) -> KeptUpload:
    """The files of one model, kept in a folder that has the name of theirs.

    It lies in one that is named by all that is in it. ModelError when there is no model among
    the files or more than one, or when they are too many or larger than `largest` bytes.
    """
    if not files:
        raise ModelError("There is no file in this upload: choose a model's folder or a GGUF file.")
    paths = {name: _path(name) for name in files}
    home = _home(paths.values())
    index = next((files[name] for name, path in paths.items() if path == home / INDEX), None)
    visible = [path for path in paths.values() if not _is_hidden(path)]
    needed = _needed(visible, home, _shards(index) if index else set())
    taken = sorted(name for name, path in paths.items() if path in needed)
    if len(taken) > MOST_FILES:
        raise ModelError(f"A model has at most {MOST_FILES} files, not {len(taken):,}.")
    if (size := sum(sizes[name] for name in taken)) > largest:
        raise ModelError(
            f"An upload has at most {largest / 1e6:,.0f} MB; this one has {size / 1e6:,.0f} MB."
        )
    root.mkdir(parents=True, exist_ok=True)
    _sweep(root)
    beside = Path(tempfile.mkdtemp(prefix=RECEIVING, dir=root))
    try:
        title = _title(home, [paths[name].name for name in taken])
        digest = hashlib.sha256(title.encode())
        (beside / title).mkdir()
        for name in taken:
            digest.update(_copied(files[name], beside / title / paths[name].name))
        folder = root / f"{UPLOAD}{digest.hexdigest()[:24]}"
        if not folder.is_dir():
            beside.rename(folder)
        os.utime(folder)
        _make_room(root, folder, KEPT * largest)
        others = {paths[name] for name in files} - needed
        return KeptUpload(folder / title, tuple(_beside(home, others)))
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def skipped_files(skipped: Sequence[str]) -> str:
    """Which files of an upload were not kept, in one line."""
    if not skipped:
        return ""
    files = "1 file" if len(skipped) == 1 else f"{len(skipped):,} files"
    named = [shown(name) for name in skipped[:2]]
    if (more := len(skipped) - len(named)) > 0:
        named = [", ".join(named), "1 other" if more == 1 else f"{more:,} others"]
    return f"Skipped {files} that a model does not need: {' and '.join(named)}."


def _path(name: str) -> PurePosixPath:
    """An uploaded name, with the folders that a browser puts before it."""
    parts = re.split(r"[/\\]", name)
    if any(part in ("", ".", "..") for part in parts):
        raise ModelError("This upload holds a file without a valid name: rename it.")
    return PurePosixPath(*parts)


def _is_hidden(path: PurePosixPath) -> bool:
    """Whether it or a folder around it begins with a dot; the chosen folder itself may."""
    return any(part.startswith(".") for part in path.parts[1:] or path.parts)


def _home(paths: Iterable[PurePosixPath]) -> PurePosixPath:
    """The folder of the model: the outermost one with a config and, if any has them, weights."""
    visible = [path for path in paths if not _is_hidden(path)]
    homes = {path.parent for path in visible if path.name == CONFIG}
    homes = homes or {path.parent for path in visible if path.name.endswith(GGUF)}
    if not homes:
        raise ModelError(
            f"There is no {CONFIG} and no GGUF file in this upload: choose the folder of a model."
        )
    endings = (ENDING, GGUF, *PICKLED, *FOREIGN)
    homes = homes & {path.parent for path in visible if path.name.endswith(endings)} or homes
    outermost = min(len(home.parts) for home in homes)
    first, *more = (home for home in homes if len(home.parts) == outermost)
    if more:
        raise ModelError(f"This upload holds {CONFIG} twice: choose the folder of one model.")
    return first


def _shards(index: BinaryIO) -> set[str]:
    """The files that an index names; none where it is damaged, which opening the model says."""
    try:
        return shards_in(index.read(LARGEST[INDEX]).decode("utf-8"))
    except UnicodeDecodeError:
        return set()
    finally:
        index.seek(0)


def _needed(
    visible: Sequence[PurePosixPath], home: PurePosixPath, shards: Set[str]
) -> set[PurePosixPath]:
    """The files of the folder that open its model. ModelError where none holds its weights.

    `shards` are the files that its index names.
    """
    names = {path.name for path in visible if path.parent == home}
    elsewhere = {path.name for path in visible if path.is_relative_to(home)} - names
    needed = files_that_open(names, shards, shown(_title(home)), elsewhere)
    if any(not name.isprintable() or len(name) > LONGEST_NAME for name in needed):
        raise ModelError("This upload holds a file without a valid name: rename it.")
    return {home / name for name in needed}


def _title(home: PurePosixPath, taken: Sequence[str] = ()) -> str:
    """What the folder is called, or the model of the hub's cache, as the name of a folder.

    A GGUF file that came without a folder is called by its own name.
    """
    alone = next((name for name in taken if name.endswith(GGUF)), "") if not home.name else ""
    called = model_name(Path(alone) if alone else Path(home)).rpartition("/")[2]
    plain = "".join(letter if letter.isprintable() else "_" for letter in called)
    return plain[:LONGEST_TITLE].strip(" .") or "model"


def _beside(home: PurePosixPath, paths: Iterable[PurePosixPath]) -> list[str]:
    """The names of these as they lie in the folder, the outermost first."""
    within = [path.relative_to(home) if path.is_relative_to(home) else path for path in paths]
    return list(map(str, sorted(within, key=lambda path: (len(path.parts), path))))


def _copied(source: BinaryIO, path: Path) -> bytes:
    """Copy a file; its name and contents as a digest."""
    digest = hashlib.sha256(path.name.encode())
    if path.exists():
        raise ModelError(
            f"This upload holds {path.name[:60]} twice: choose the folder of one model."
        )
    with path.open("xb") as target:
        while block := source.read(1 << 20):
            digest.update(block)
            target.write(block)
    return digest.digest()


def _sweep(root: Path) -> None:
    """Remove what is left of uploads whose process was killed while it received them."""
    for left in root.glob(f"{RECEIVING}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > LONGEST_RECEIVING:
                shutil.rmtree(left, ignore_errors=True)


def _make_room(root: Path, newest: Path, most: int) -> None:
    """Remove the oldest uploads until the rest has at most so many bytes."""
    kept = sorted(root.glob(f"{UPLOAD}*"), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    total = 0
    for folder in kept:
        total += sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        if total > most and folder != newest:
            shutil.rmtree(folder, ignore_errors=True)


def uploaded(name: str, *roots: Path) -> Path | None:
    """The folder of an upload, or of one of the museum's systems, by its name in an address."""
    roots = roots or (uploads_root(), systems_root())
    if re.fullmatch(rf"{UPLOAD}[0-9a-f]{{24}}|[a-z-]{{1,40}}", name):
        return next((root / name for root in roots if is_checkpoint(root / name)), None)
    own, _, digest = name.rpartition(f"-{UPLOAD}")
    if not re.fullmatch(r"[0-9a-f]{24}", digest):
        return None
    inside = (each for root in roots for each in root.glob(f"{UPLOAD}{digest}/*"))
    return next((folder for folder in inside if folder.name == own), None)
