"""A reader is known by a key of 128 random bits in a cookie, and by nothing else.

Runs and uploads belong to a digest of the key, their `owner`. The server's first answer sets the
key (`explorer/server/reader_cookie.py`), and no script can read it. A reader who clears the cookie,
or accepts none, is a new reader the next time; a link still opens what it names. If the server is
not public, a reader at its own machine sees everything.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st

from explorer.app.session import session
from explorer.system import limits
from explorer.system.data_folders import runs_root
from explorer.system.operating_system import is_mine_alone

COOKIE = "explorer_reader"
BY_TLS = f"__Host-{COOKIE}"
"""The name under TLS: a browser accepts a cookie of this name from no other server."""
KEY = re.compile(r"[0-9a-f]{32}")


def new_key() -> str:
    """A key that nobody can guess."""
    return secrets.token_hex(16)


def owner_of(key: str) -> str:
    """The digest of a key that marks a reader's folders; it grants no access."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def key_in(cookies: Mapping[str, str]) -> str:
    """The key in these cookies, preferably the one set under TLS; empty if there is none."""
    values = (str(cookies.get(name, "")) for name in (BY_TLS, COOKIE))
    return next(filter(KEY.fullmatch, values), "")


def owner() -> str:
    """The owner of this run's reader; without a cookie it lasts as long as the session."""
    here = session()
    if not here.owner:
        here.owner = owner_of(key_in(st.context.cookies) or new_key())
    return here.owner


def ip_of(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address, in its IPv4 form if it has one; None for a name."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def network_of(host: str) -> str:
    """An IPv4 address, or the 64 bits of an IPv6 address that a household shares."""
    ip = ip_of(host)
    return str(int(ip) >> 64) if isinstance(ip, IPv6Address) else str(ip or host)


def network() -> str:
    """The network of this reader, which is never written to disk."""
    return network_of(str(st.context.ip_address or ""))


def network_digest() -> str:
    """A digest of the network, which may be written to disk."""
    return digest(network())


OWN_FILE = ".secret"
SECRET_BYTES = 32


def digest(text: str) -> str:
    """A digest of the text with the secret of this installation.

    Without a secret, one could find a network by trying all of them. The secret is a file in the
    folder of runs, which all replicas share; only the server's user can read it.
    """
    return hmac.digest(_of(runs_root() / OWN_FILE), text.encode(), "sha256").hex()[:32]


@lru_cache(maxsize=4)
def _of(file: Path) -> bytes:
    """The secret in the file, which is made anew if it is missing or others could have read it."""
    with suppress(OSError):  # without a disk the secret lasts as long as the server
        _make(file)
        return file.read_bytes()
    return secrets.token_bytes(SECRET_BYTES)


def _make(file: Path) -> None:
    """Make the file. If several replicas start together, the first one's file stays."""
    with suppress(FileNotFoundError):
        if _is_private(file):
            return
        file.unlink()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_name(f"{OWN_FILE}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(secrets.token_bytes(SECRET_BYTES))
    with suppress(FileExistsError):
        os.link(new, file)
    new.unlink()


def _is_private(file: Path) -> bool:
    status = file.stat()
    return status.st_size == SECRET_BYTES and is_mine_alone(status)


FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via")
"""Headers in which a proxy says where a request comes from."""


def is_local() -> bool:
    """Whether only this machine reaches the server, and this reader came without a proxy.

    Such a reader runs the server and sees everything. Somebody who came through a proxy on this
    machine may be anybody. A proxy may send no header and name the server by its own address, but
    the browser sends the origin of the page when it connects, and the proxy hands it on.
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
    """Whether this name or address always means the machine itself."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _host(address: str) -> str:
    """The name or IP address without the port."""
    try:
        return urlsplit(f"//{address}").hostname or ""
    except ValueError:
        return ""
