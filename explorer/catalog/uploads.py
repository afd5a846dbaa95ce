"""Uploaded models: each is kept in a folder named by its contents, the oldest make room.

Nothing is opened here; the folder is then read like any other.
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

from explorer.catalog import ModelError
from explorer.catalog.folders import systems_root, uploads_root

UPLOAD, RECEIVING = "upload-", ".receiving-"
LONGEST_RECEIVING = 3600
"""Seconds after which no process can still be copying."""
LARGEST_UPLOAD = 200_000_000
UPLOADS_KEPT = 4 * LARGEST_UPLOAD
"""Bytes of one upload, and of all that are kept."""
MOST_FILES = 40


def keep_upload(files: Mapping[str, BinaryIO], sizes: Mapping[str, int], root: Path) -> Path:
    """The files of one model, kept in a folder named by what is in them.

    Names are taken without their folders. ModelError when they are too many or too large.
    """
    if not files:
        raise ModelError("There is no file in this upload: choose the folder of a model.")
    if len(files) > MOST_FILES:
        raise ModelError(f"A model has at most {MOST_FILES} files, not {len(files):,}.")
    if sum(sizes.values()) > LARGEST_UPLOAD:
        raise ModelError(
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
    """The last part of an uploaded name. ModelError unless it can be that of a file."""
    last = re.split(r"[/\\]", name)[-1]
    if not last.isprintable() or last.startswith(".") or not 0 < len(last) <= 120:
        raise ModelError("This upload holds a file without a valid name: rename it.")
    return last


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


def _make_room(root: Path, newest: Path) -> None:
    """Remove the oldest uploads until the rest is small enough."""
    kept = sorted(root.glob(f"{UPLOAD}*"), key=lambda each: each.stat().st_mtime_ns, reverse=True)
    total = 0
    for folder in kept:
        total += sum(file.stat().st_size for file in folder.iterdir())
        if total > UPLOADS_KEPT and folder != newest:
            shutil.rmtree(folder, ignore_errors=True)


def uploaded(name: str, *roots: Path) -> Path | None:
    """The folder of an upload, or of one of the museum's systems, by its name in an address."""
    if not re.fullmatch(rf"{UPLOAD}[0-9a-f]{{24}}|[a-z-]{{1,40}}", name):
        return None
    folders = (root / name for root in roots or (uploads_root(), systems_root()))
    return next((folder for folder in folders if folder.is_dir()), None)
