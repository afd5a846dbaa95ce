"""Texts too long for an address: each is a file of this app, and a link has its hash.

Whoever has the link reads the text, as with any other link; nobody can list the texts, and a hash
cannot be guessed. What has not been opened for long leaves, and the oldest leave where all together
are too much.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from explorer.app.limits import TEXT_CHARACTERS, TEXTS_BYTES, TEXTS_DAYS
from explorer.catalog.folders import texts_root

NAME = re.compile(r"[0-9a-f]{32}")
ENDING, WRITING = ".txt", "writing-"
DAY = 24 * 60 * 60
LONGEST_CHARACTER = 4
"""Bytes of one in UTF-8."""


def name_of(text: str) -> str:
    """Half of the text's SHA-256: enough that no other text is found for it."""
    return hashlib.sha256(_bytes_of(text)).hexdigest()[:32]


def keep(text: str) -> str:
    """Its name, once it is kept; empty where the disk has no room for it."""
    name, data = name_of(text), _bytes_of(text)
    root = texts_root()
    path = root / f"{name}{ENDING}"
    try:
        if path.is_file():
            os.utime(path)
            return name
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o700)
        handle, writing = tempfile.mkstemp(prefix=WRITING, dir=root)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(writing, path)
        finally:
            Path(writing).unlink(missing_ok=True)
    except OSError:
        return ""
    sweep()
    return name


def read(name: str) -> str | None:
    """The text of this name; None where it is not here, or is not what its name says."""
    if not NAME.fullmatch(name):
        return None
    path = texts_root() / f"{name}{ENDING}"
    most = LONGEST_CHARACTER * TEXT_CHARACTERS.most
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most or hashlib.sha256(data).hexdigest()[:32] != name:
            return None
        os.utime(path)
    except OSError:
        return None
    return data.decode("utf-8", "surrogatepass")


def sweep() -> None:
    """Remove what was opened longest ago until all fit, and what is kept no longer."""
    total, oldest = 0, time.time() - TEXTS_DAYS.most * DAY
    with suppress(OSError):
        files = [(each.stat(), each) for each in texts_root().iterdir()]
        for found, path in sorted(files, key=lambda one: -one[0].st_mtime):
            total += found.st_size
            if total > TEXTS_BYTES.most or found.st_mtime < oldest:
                path.unlink(missing_ok=True)


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
