"""A secret of this installation: what is digested with it says nothing to who has the digest.

There are so few addresses of networks that each could be tried. One file in the folder of runs,
which is that of all replicas; only the server's user reads it.
"""

import hmac
import os
import secrets
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from explorer.system.data_folders import runs_root
from explorer.system.operating_system import is_mine_alone

OWN_FILE = ".secret"
SECRET_BYTES = 32


def digest(text: str) -> str:
    """The same text has the same digest, here and until the secret is deleted."""
    return hmac.digest(_of(runs_root() / OWN_FILE), text.encode(), "sha256").hex()[:32]


@lru_cache(maxsize=4)
def _of(file: Path) -> bytes:
    """That of the file, which is made where it is not there or others could have read it."""
    with suppress(OSError):  # without a disk it lasts as long as the server
        _make(file)
        return file.read_bytes()
    return secrets.token_bytes(SECRET_BYTES)


def _make(file: Path) -> None:
    """Of replicas that start together the first one's stays."""
    with suppress(FileNotFoundError):
        if _is_private(file):
            return
        file.unlink()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = file.with_name(f"{OWN_FILE}.{secrets.token_hex(8)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as made:
        made.write(secrets.token_bytes(SECRET_BYTES))
    with suppress(FileExistsError):
        os.link(beside, file)
    beside.unlink()


def _is_private(file: Path) -> bool:
    found = file.stat()
    return found.st_size == SECRET_BYTES and is_mine_alone(found)
