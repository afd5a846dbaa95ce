"""Texts too long for an address: each is a file of this app, and a link has its hash.

Whoever has the link reads the text, as with any other link; nobody can list the texts, and a hash
cannot be guessed. What has not been opened for long leaves, and the oldest leave where all together
are too much.
"""

import hashlib
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from explorer.system.data_folders import texts_root
from explorer.system.limits import TEXT_CHARACTERS, TEXTS_BYTES, TEXTS_DAYS

NAME = re.compile(r"[0-9a-f]{32}")
ENDING, WRITING = ".txt", "writing-"
DAY = 24 * 60 * 60
LONGEST_CHARACTER = 4
"""Bytes of one in UTF-8."""
SHARES = 4


def name_of(text: str) -> str:
    """Half of the text's SHA-256: enough that no other text is found for it."""
    return _digest(_bytes_of(text))


def keep(text: str, of: str = "all") -> str:
    """Its name, once it is kept; empty where the disk has no room for it.

    `of` is a digest of who shares the room: nobody's texts push out all those of the others.
    """
    name, data = name_of(text), _bytes_of(text)
    folder = texts_root() / of
    path = folder / f"{name}{ENDING}"
    try:
        if path.is_file():
            os.utime(path)
            return name
        folder.mkdir(parents=True, exist_ok=True)
        texts_root().chmod(0o700)
        handle, writing = tempfile.mkstemp(prefix=WRITING, dir=folder)
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
    for path in texts_root().glob(f"*/{name}{ENDING}"):
        data = _read(path)
        if _digest(data) == name:
            return data.decode("utf-8", "surrogatepass")
    return None


def _read(path: Path) -> bytes:
    """What is in it; nothing where it cannot be read, or is longer than a text may be."""
    most = LONGEST_CHARACTER * TEXT_CHARACTERS.most
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError:
        return b""
    with suppress(OSError):  # it is there, whether or not its time can be noted
        os.utime(path)
    return data if len(data) <= most else b""


def sweep() -> None:
    """Remove what was opened longest ago until all fit, and what is kept no longer.

    Those that share a folder have at most a quarter of the room.
    """
    oldest, total = time.time() - TEXTS_DAYS.most * DAY, 0
    shares: Counter[Path] = Counter()
    for opened, size, path in sorted(_files(), reverse=True):
        total += size
        shares[path.parent] += size
        is_full = total > TEXTS_BYTES.most or shares[path.parent] > TEXTS_BYTES.most / SHARES
        if is_full or opened < oldest:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _files() -> Iterator[tuple[float, int, Path]]:
    """When each was opened last, and its bytes; one may leave meanwhile."""
    for path in texts_root().glob("*/*"):
        with suppress(OSError):
            found = path.stat()
            yield found.st_mtime, found.st_size, path


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
