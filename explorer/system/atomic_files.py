"""Small files that are replaced as a whole, and a lock that ends with its process."""

import errno
import json
import os
import shutil
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from explorer.system import limits, operating_system

OWNER_ONLY = 0o600
"""Other accounts on this machine cannot read the files of a run."""
LONGEST_WRITING = 3600
"""Seconds after which no process can still be writing a file."""
LARGEST_JSON = 8_000_000
"""Bytes; no status or spec is longer."""


def write_bytes(path: Path, content: bytes, mode: int = OWNER_ONLY) -> None:
    """Replace the file: whoever reads it gets the old content or the new one."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        operating_system.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sweep_files(folder: Path) -> None:
    """Remove what processes that were killed while they wrote have left in this folder."""
    for path in folder.glob(f".*.{'[0-9a-f]' * 32}"):
        with suppress(OSError):
            if abs(time.time() - path.stat().st_mtime) > LONGEST_WRITING:
                path.unlink()


def write_text(path: Path, text: str, mode: int = OWNER_ONLY) -> None:
    write_bytes(path, text.encode(), mode)


def write_json(path: Path, values: object, mode: int = OWNER_ONLY) -> None:
    write_text(path, json.dumps(values, indent=1) + "\n", mode)


def read_json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; OSError if there is no file, ValueError if it has no object."""
    from models.file_text import parse_json  # who only writes does without torch

    if path.stat().st_size > LARGEST_JSON:
        raise ValueError(f"{path.name} is too large.")
    try:
        values = parse_json(path.read_bytes())
    except RecursionError as error:
        raise ValueError(f"{path.name} is nested too deep.") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path.name} contains no JSON object.")
    return values


def read_json_or_empty(path: Path) -> dict[str, Any]:
    """The same; empty if there is no such object."""
    try:
        return read_json_object(path)
    except (OSError, ValueError):
        return {}


class Lock:
    """A lock file; the kernel unlocks it when its process ends in any way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def acquire(self, patience: float = 0.0) -> bool:
        """Take the lock, waiting at most `patience` seconds."""
        end = time.monotonic() + patience
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            if operating_system.lock(file):
                self._file = file
                return True
            os.close(file)
            if time.monotonic() >= end:
                return False
            time.sleep(0.02)

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_held(path: Path) -> bool:
    """Whether a living process has the lock; does not take it."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not operating_system.lock(file, shared=True)
    finally:
        os.close(file)


def fits(folder: Path, size: int) -> bool:
    """Whether the disk has room for `size` bytes in addition to what must stay free."""
    there = next(filter(Path.exists, (folder, *folder.parents)))
    return size + limits.DISK_LEFT.most <= shutil.disk_usage(there).free


def bytes_of(folder: Path | str) -> int:
    """The bytes of the files in a folder and its subfolders; a file that vanishes has none.

    A file with several names counts once.
    """
    sizes = dict[int, int]()
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                status = os.lstat(os.path.join(place, name))
                sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


def check_room(folder: Path, size: int) -> None:
    """OSError (ENOSPC) unless it has."""
    if not fits(folder, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
