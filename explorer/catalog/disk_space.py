"""Whether something still fits on the disk, asked before it is written."""

from __future__ import annotations

import shutil
from pathlib import Path

from explorer.app import limits
from explorer.catalog import ModelError


def fits(folder: Path, size: int) -> bool:
    """Whether this disk takes so many bytes, and leaves free what has to stay free."""
    return size + limits.DISK_LEFT.most <= shutil.disk_usage(folder).free


def check_disk_space(folder: Path, size: int) -> None:
    """ModelError where it does not."""
    if not fits(folder, size):
        raise ModelError(limits.DISK_LEFT.refusal(size))
