"""Who comes in: requests under a name of this server, from its own pages, for what it serves.

A page of another site can send a browser's requests here, and a name of another site can be made
to lead here (DNS rebinding). Both are refused before Streamlit, which lets the first in where the
origin is this machine's address, and asks an outside host what that is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.app.local_reader import is_loopback
from explorer.server.refusals import refuse

HOSTS = "EXPLORER_HOSTS"
LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?"
NAME = re.compile(rf"(\*\.)?{LABEL}(\.{LABEL})*")
WHERE = r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:(?P<port>[0-9]{1,5}))?"
HOST = re.compile(WHERE)
ORIGIN = re.compile(rf"(?P<scheme>https?)://{WHERE}")
PORTS = {"http": "80", "https": "443"}

CLOSED = re.compile(
    r"(.*/)?(_stcore/(metrics|script-health-check|agent/.*)|auth/.*|oauth2callback)"
)
"""What Streamlit serves besides and the app does not use: its counts, of which every reader's
caches are some, its interface for programs, and signing in."""

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""No address of the app has one; Starlette finds what is closed also with a line end after it."""

WRONG_HOST = f"This server does not answer to that name; whoever runs it names others in {HOSTS}."
WRONG_ORIGIN = "This request came from a page of another site; open the page of this server itself."
NOTHING_HERE = "There is nothing here."


def named_hosts() -> frozenset[str]:
    """The names and addresses that the setting adds, such as demo.example.org, *.example.org."""
    return frozenset(filter(None, map(_plain, os.environ.get(HOSTS, "").split(","))))


def fault() -> str | None:
    """One sentence saying what is wrong with the setting, for whoever starts the server."""
    for name in sorted(named_hosts()):
        if not (NAME.fullmatch(name) or _address(name)):
            return (
                f"{HOSTS} must be names of hosts without a scheme or a port, separated by commas "
                f"(demo.example.org, *.example.org), not {name[:60]!r}."
            )
    return None


class Door:
    """Refuses a foreign Host, a foreign Origin, and paths that nobody needs.

    `hosts` is what the server's own settings name besides the setting of its readers' names.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        self.app = app
        self.hosts = named_hosts() | {_plain(each) for each in hosts if each}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self.app(scope, receive, send)
        elif not self.answers_to(scope):
            await refuse(scope, receive, send, 421, WRONG_HOST)
        elif not is_from_here(scope):
            await refuse(scope, receive, send, 403, WRONG_ORIGIN)
        elif CLOSED.fullmatch(scope["path"]) or CONTROL.search(scope["path"]):
            await refuse(scope, receive, send, 404, NOTHING_HERE)
        else:
            await self.app(scope, receive, send)

    def answers_to(self, scope: Scope) -> bool:
        """Whether Host is this machine, the address that was connected to, or a name that is set.

        What a proxy says was asked of it (X-Forwarded-Host) is not believed: it passes Host on.
        """
        said = Headers(scope=scope).getlist("host")
        found = HOST.fullmatch(said[0].lower()) if len(said) == 1 else None
        if found is None:
            return False
        host = _plain(found["host"])
        if is_loopback(host) or host in self.hosts:
            return True
        if address := _address(host):
            return address == _address((scope.get("server") or ("",))[0])
        _, _, above = host.partition(".")
        return bool(above) and f"*.{above}" in self.hosts


def is_from_here(scope: Scope) -> bool:
    """Whether a page of this server sent it, or a person who follows a link, or no browser."""
    headers = Headers(scope=scope)
    origins = headers.getlist("origin")
    if origins:
        return len(origins) == 1 and _same(origins[0], headers.get("host", ""))
    if headers.get("sec-fetch-site", "none") in {"none", "same-origin"}:
        return True
    is_visit = headers.get("sec-fetch-mode") == "navigate"
    return scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} and is_visit


def _same(origin: str, host: str) -> bool:
    """Whether the two name one server; a proxy that ends TLS leaves only the scheme unknown."""
    theirs, ours = ORIGIN.fullmatch(origin.lower()), HOST.fullmatch(host.lower())
    if theirs is None or ours is None:
        return False
    usual = PORTS[theirs["scheme"]]
    names_agree = _plain(theirs["host"]) == _plain(ours["host"])
    return names_agree and (theirs["port"] or usual) == (ours["port"] or usual)


def _plain(host: str) -> str:
    """As it is compared: small letters, no brackets, no dot at the end."""
    return host.strip().lower().strip("[]").removesuffix(".")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(host)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
