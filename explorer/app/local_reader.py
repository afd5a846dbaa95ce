"""Whether a reader sits at the machine that the app runs on."""

from ipaddress import ip_address
from urllib.parse import urlsplit

import streamlit as st

from explorer.system import limits

FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via")
"""What a proxy says of whoever came to it."""


def is_local() -> bool:
    """Whether only this machine reaches the server, and this reader's browser did without a proxy.

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
