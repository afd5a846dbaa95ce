"""Texts that are too long for an address: each is a file, and a link has its hash.

Whoever has the link can read the text, as with any link; nobody can list the texts or guess a hash.
Texts that nobody has opened for long are removed, and the oldest if all together are too large.
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from explorer.system.atomic_files import write_bytes
from explorer.system.data_folders import texts_root
from explorer.system.limits import TEXT_CHARACTERS, TEXTS_BYTES, TEXTS_DAYS
from explorer.system.running_time import RunningTime

NAME = re.compile(r"[0-9a-f]{32}")
ENDING = ".txt"
DAY = 24 * 60 * 60
LONGEST_CHARACTER = 4
"""Bytes of one character in UTF-8."""
SHARES = 4


def name_of(text: str) -> str:
    """Half of the text's SHA-256, which is enough that nobody finds another text for it."""
    return _digest(_bytes_of(text))


def keep(text: str, of: str = "all") -> str:
    """Store a text and return its name; empty if the disk has no room for it.

    `of` is the digest of a network, whose texts cannot push out all those of others.
    """
    name, folder = name_of(text), texts_root() / of
    path = folder / f"{name}{ENDING}"
    try:
        if path.is_file():
            os.utime(path)
            return name
        folder.mkdir(parents=True, exist_ok=True)
        texts_root().chmod(0o700)
        write_bytes(path, _bytes_of(text))
    except OSError:
        return ""
    sweep()
    return name


def read(name: str) -> str | None:
    """The text of this name; None if it is missing or does not match its name."""
    if not NAME.fullmatch(name):
        return None
    for path in texts_root().glob(f"*/{name}{ENDING}"):
        data = _bytes_in(path)
        if _digest(data) == name:
            return data.decode("utf-8", "surrogatepass")
    return None


def _bytes_in(path: Path) -> bytes:
    """The content of a file; empty if it cannot be read or is longer than a text may be."""
    most = LONGEST_CHARACTER * TEXT_CHARACTERS.most
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError:
        return b""
    with suppress(OSError):  # the text can be read even if its time cannot be updated
        os.utime(path)
    return data if len(data) <= most else b""


def sweep() -> None:
    """Remove texts that are too old, and the least recently opened ones until all fit.

    The texts in one folder may use at most a quarter of the room.
    """
    ran, total = RunningTime(texts_root()), 0
    shares: Counter[Path] = Counter()
    for _, size, path in sorted(_files(), reverse=True):
        total += size
        shares[path.parent] += size
        is_full = total > TEXTS_BYTES.most or shares[path.parent] > TEXTS_BYTES.most / SHARES
        with suppress(OSError):
            if is_full or ran.age(path) > TEXTS_DAYS.most * DAY:
                path.unlink(missing_ok=True)


def _files() -> Iterator[tuple[float, int, Path]]:
    """The last use and the size of each file; another process may remove one meanwhile."""
    for path in texts_root().glob("*/*"):
        with suppress(OSError):
            status = path.stat()
            yield status.st_mtime, status.st_size, path


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
