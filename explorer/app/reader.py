"""Who a reader is: a key of 128 random bits in a cookie, and nothing else.

What a reader made (runs, uploads) belongs to a digest of the key, its `owner`. The key is set
by the server's first answer (`explorer/server/reader_cookie.py`) and is readable by no script.
Whoever clears it, or accepts no cookie, is somebody else the next time; a link still opens
what it names.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from ipaddress import ip_address

import streamlit as st

from explorer.app.local_reader import is_local
from explorer.app.own_secret import digest
from explorer.app.session import session

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
    found = session()
    if not found.owner:
        found.owner = owner_of(key_in(st.context.cookies) or new_key())
    return found.owner


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


def sees_everything() -> bool:
    """Whether this reader runs the server: sits at its machine, and it is not a public one."""
    return is_local()
