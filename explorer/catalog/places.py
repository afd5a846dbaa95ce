"""Where models of others come from: a folder named at start, an upload, a path or a hub id.

Nothing is opened here. Each way ends in a folder on this machine, which the library
then looks at like any other.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

FREE = "EXPLORER_FREE_PATH"
MOST_FOLDERS = 200
LOOKED_INTO = ("", "snapshots/*", "*", "*/snapshots/*")
"""A model, one in the hub's cache, and folders of either."""

UPLOAD, RECEIVING = "upload-", ".receiving-"
LONGEST_RECEIVING = 3600
"""Seconds after which nobody can still be copying."""
LARGEST_UPLOAD = 200_000_000
UPLOADS_KEPT = 4 * LARGEST_UPLOAD
"""Bytes of one upload, and of all that are kept; the oldest make room."""
MOST_FILES = 40


class PlaceError(ValueError):
    """Why there is no model there, in one sentence."""


def named_folders() -> list[Path]:
    """The checkpoint folders in the places that EXPLORER_MODELS names, sorted by name."""
    found: dict[Path, None] = {}
    for place in os.environ.get("EXPLORER_MODELS", "").split(os.pathsep):
        if place.strip():
            found |= dict.fromkeys(checkpoints_in(Path(place.strip()).expanduser().absolute()))
    return list(found)[:MOST_FOLDERS]


def empty_places() -> list[str]:
    """The places that EXPLORER_MODELS names in vain, by their last name."""
    named = [place.strip() for place in os.environ.get("EXPLORER_MODELS", "").split(os.pathsep)]
    folders = [Path(place).expanduser().absolute() for place in named if place]
    return [folder.name for folder in folders if not checkpoints_in(folder)]


def checkpoints_in(place: Path) -> list[Path]:
    """The place itself if it is a checkpoint, else those in it; also as the hub keeps them."""
    for pattern in LOOKED_INTO:
        try:
            folders = sorted(place.glob(pattern)) if pattern else [place]
            found = [each for each in folders if (each / "config.json").is_file()]
        except (OSError, ValueError):  # also a name with a NUL byte
            return []
        if found:
            return found[:MOST_FOLDERS]
    return []


def name_of(folder: Path) -> str:
    """What a folder is called: its name, or the id that the hub's cache makes of it."""
    if folder.parent.name == "snapshots":
        from explorer.catalog import hub  # 8 MB that most servers never need

        hub_id = folder.parent.parent.name.removeprefix("models--").replace("--", "/")
        return hub_id if hub.is_id(hub_id) else folder.name
    return folder.name or "model"


def are_free() -> bool:
    """Whether a reader may name any folder of this machine, or have one fetched from the hub.

    Only who starts the app can say so: whether a visitor comes from outside cannot be
    told behind a proxy.
    """
    return os.environ.get(FREE) == "1"


def keep_upload(files: Mapping[str, BinaryIO], sizes: Mapping[str, int], root: Path) -> Path:
    """The files of one model, kept in a folder named by what is in them.

    Names are taken without their folders. PlaceError when they are too many or too large.
    """
    if not files:
        raise PlaceError("There is no file in this upload: choose the folder of a model.")
    if len(files) > MOST_FILES:
        raise PlaceError(f"A model has at most {MOST_FILES} files, not {len(files):,}.")
    if sum(sizes.values()) > LARGEST_UPLOAD:
        raise PlaceError(
            f"An upload has at most {LARGEST_UPLOAD / 1e6:,.0f} MB; this one has "
            f"{sum(sizes.values()) / 1e6:,.0f} MB."
        )
    root.mkdir(parents=True, exist_ok=True)
    _sweep(root)
    beside = Path(tempfile.mkdtemp(prefix=RECEIVING, dir=root))
    try:
        digest = hashlib.sha256()
        for name in sorted(files, key=_file_name):
            digest.update(_copied(files[name], beside / _file_name(name)))
        folder = root / f"{UPLOAD}{digest.hexdigest()[:24]}"
        if not folder.is_dir():
            beside.rename(folder)
        os.utime(folder)
        _make_room(root, folder)
        return folder
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _file_name(name: str) -> str:
    """The last part of an uploaded name. PlaceError unless it can be that of a file."""
    last = re.split(r"[/\\]", name)[-1]
    if not last.isprintable() or last.startswith(".") or not 0 < len(last) <= 120:
        raise PlaceError("This upload holds a file whose name is none.")
    return last


def _copied(source: BinaryIO, path: Path) -> bytes:
    """Copy a file; its name and contents as a digest."""
    digest = hashlib.sha256(path.name.encode())
    if path.exists():
        raise PlaceError(
            f"This upload holds {path.name[:60]} twice: choose the folder of one model."
        )
    with path.open("xb") as target:
        while block := source.read(1 << 20):
            digest.update(block)
            target.write(block)
    return digest.digest()


def _sweep(root: Path) -> None:
    """Remove what a process left that was ended while it received."""
    for left in root.glob(f"{RECEIVING}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > LONGEST_RECEIVING:
                shutil.rmtree(left, ignore_errors=True)


def _make_room(root: Path, newest: Path) -> None:
    """Remove the oldest uploads until the rest is small enough."""
    kept = sorted(root.glob(f"{UPLOAD}*"), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    total = 0
    for folder in kept:
        total += sum(file.stat().st_size for file in folder.iterdir())
        if total > UPLOADS_KEPT and folder != newest:
            shutil.rmtree(folder, ignore_errors=True)


def uploaded(name: str, root: Path) -> Path | None:
    """The folder of an upload, or of a document's system, by the name that its address has."""
    if not re.fullmatch(rf"{UPLOAD}[0-9a-f]{{24}}|[a-z-]{{1,40}}", name):
        return None
    return root / name if (root / name).is_dir() else None


def typed(place: str) -> Path:
    """The folder that a path or a hub id stands for. PlaceError says in a sentence why none."""
    if not are_free():
        raise PlaceError(f"Paths and hub ids are closed; start the app with {FREE}=1 to open them.")
    place = place.strip()
    if found := checkpoints_in(_folder(place)) if place else []:
        if len(found) > 1:
            raise PlaceError(
                f"There are {len(found):,} models in this folder; name one of them, such as "
                f"{found[0].name[:60]}."
            )
        return found[0]
    from explorer.catalog import hub

    if not hub.is_id(place):
        raise PlaceError("There is no model folder of that name, and it is no hub id either.")
    try:
        return hub.fetched(place)
    except hub.HubError as error:
        raise PlaceError(str(error)) from error


def _folder(place: str) -> Path:
    """The folder of a typed path, also where it was that of a file in it."""
    try:
        folder = Path(place).expanduser().absolute()
        return folder.parent if folder.is_file() else folder
    except (OSError, ValueError, RuntimeError):  # nobody of that name has a home, a NUL byte
        return Path(place)
