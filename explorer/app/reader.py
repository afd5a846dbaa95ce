"""Who a reader is: a key of 128 random bits in a cookie, and nothing else.

What a reader made (runs, uploads) belongs to a digest of the key, its `owner`. The key is set
by the server's first answer (`explorer/server/reader_cookie.py`) and is readable by no script.
Whoever clears it, or accepts no cookie, is somebody else the next time; a link still opens
what it names. A reader who sits at the server's own machine, of a server that is not public, sees
everything.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st

from explorer.app.session import session
from explorer.system import limits
from explorer.system.data_folders import runs_root
from explorer.system.operating_system import is_mine_alone

COOKIE = "explorer_reader"
BY_TLS = f"__Host-{COOKIE}"
"""Where a page comes by TLS: a browser takes a cookie of this name from no other server."""
KEY = re.compile(r"[0-9a-f]{32}")


def new_key() -> str:
    """A key that nobody can guess."""
    return secrets.token_hex(16)


def owner_of(key: str) -> str:
    """The digest by which the folders of a reader know whose they are; it opens nothing."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def key_in(cookies: Mapping[str, str]) -> str:
    """The key among these cookies, rather the one that came by TLS; empty where there is none."""
    found = (KEY.fullmatch(str(cookies.get(name, ""))) for name in (BY_TLS, COOKIE))
    return next((each[0] for each in found if each), "")


def owner() -> str:
    """Of the reader whose run this is; without a cookie it lasts as long as the session."""
    here = session()
    if not here.owner:
        here.owner = owner_of(key_in(st.context.cookies) or new_key())
    return here.owner


def network_of(host: str) -> str:
    """An address, or the 64 bits of one that a household has."""
    try:
        found = ip_address(host)
    except ValueError:
        return host
    short = getattr(found, "ipv4_mapped", None) or found
    return str(short) if short.version == 4 else str(int(short) >> 64)


def network() -> str:
    """Where this reader comes from, for what is never written down."""
    return network_of(str(st.context.ip_address or ""))


def network_digest() -> str:
    """The same for what is written; all at the server's own machine share one."""
    return digest(network())


OWN_FILE = ".secret"
SECRET_BYTES = 32


def digest(text: str) -> str:
    """The same text has the same digest, here and until the secret is deleted.

    The digest says nothing without the secret of this installation: there are so few addresses of
    networks that each could be tried. The secret is a file in the folder of runs, which is that of
    all replicas; only the server's user reads it.
    """
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
    new = file.with_name(f"{OWN_FILE}.{secrets.token_hex(8)}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as opened:
        opened.write(secrets.token_bytes(SECRET_BYTES))
    with suppress(FileExistsError):
        os.link(new, file)
    new.unlink()


def _is_private(file: Path) -> bool:
    status = file.stat()
    return status.st_size == SECRET_BYTES and is_mine_alone(status)


FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via")
"""What a proxy says of whoever came to it."""


def is_local() -> bool:
    """Whether only this machine reaches the server, and this reader's browser did without a proxy.

    Such a reader runs the server and sees everything.
    One who came to a proxy on this machine may be anybody. A proxy may say nothing of that and
    name the server by its own address; but a browser says, whenever it opens the connection of
    a page, from which address it has the page, and the proxy hands that on.
    """
    headers = st.context.headers
    return (
        not limits.is_public()
        and is_loopback(st.get_option("server.address") or "")
        and is_loopback(_host(headers.get("Host", "")))
        and is_loopback(_host(headers.get("Origin", "").partition("://")[2]))
        and not any(name in headers for name in FORWARDED)
    )


def is_loopback(host: str) -> bool:
    """Whether this name or address is always that of the machine itself."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _host(named: str) -> str:
    """The name or address in it, without the port."""
    try:
        return urlsplit(f"//{named}").hostname or ""
    except ValueError:
        return ""
