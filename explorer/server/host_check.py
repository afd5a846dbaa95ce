"""Accepts requests for this server's names, from its own pages, to endpoints that the app uses.

A page of another site can make a browser send requests here, and a name of another site can resolve
to this server (DNS rebinding). Both are refused before Streamlit, which would accept the first if
the origin is this machine's address, and would ask an outside host for that address.
"""

import os
import re
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.app.reader import ip_of, is_loopback
from explorer.server.error_pages import send_error

HOSTS = "EXPLORER_HOSTS"
STREAMLIT_HOSTS = ("server.address", "browser.serverAddress")
"""Options of Streamlit that name this server, too."""
LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?"
NAME = re.compile(rf"(\*\.)?{LABEL}(\.{LABEL})*")
HOST_AND_PORT = r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:(?P<port>[0-9]{1,5}))?"
HOST = re.compile(HOST_AND_PORT)
ORIGIN = re.compile(rf"(?P<scheme>https?)://{HOST_AND_PORT}")
PORTS = {"http": "80", "https": "443"}
ALL_INTERFACES = {None, "", "0.0.0.0", "::"}  # noqa: S104

UNUSED = re.compile(
    r"(.*/)?(_stcore/(metrics|script-health-check|agent/.*)|auth/.*|oauth2callback)"
)
"""Endpoints of Streamlit that the app does not use: statistics about all readers' caches, the
interface for programs, and signing in."""
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
"""No address of the app has one, and Starlette matches a path also with a line end after it."""

WRONG_HOST = f"This server does not answer to that name. Its operator can add it to {HOSTS}."
WRONG_ORIGIN = "This request came from a page of another site. Open this server's own page instead."
NOT_FOUND = "There is nothing at this address."


def named_hosts() -> frozenset[str]:
    """The names and addresses in the setting, such as demo.example.org or *.example.org."""
    return frozenset(filter(None, map(_plain, os.environ.get(HOSTS, "").split(","))))


def fault() -> str | None:
    """One sentence on what is wrong with the setting, for whoever starts the server."""
    for name in sorted(named_hosts()):
        if not (NAME.fullmatch(name) or ip_of(name)):
            return (
                f"{HOSTS} must be names of hosts without a scheme or a port, separated by commas "
                f"(demo.example.org, *.example.org), not {name[:60]!r}."
            )
    return None


def address_to_open(address: str | None, port: int, *, by_tls: bool) -> str:
    """The address of the app for whoever started it; Streamlit would ask an outside host.

    It is localhost if the server listens on all interfaces.
    """
    host = "localhost" if address is None or address in ALL_INTERFACES else address
    return f"{'https' if by_tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


class HostCheck:
    """Refuses a foreign Host, a foreign Origin, and endpoints that the app does not use.

    `hosts` are names besides those in the setting.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        self.app = app
        self.hosts = named_hosts() | {_plain(host) for host in hosts if host}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self.app(scope, receive, send)
        elif not self.answers_to(scope):
            await send_error(scope, receive, send, 421, WRONG_HOST)
        elif not is_same_origin(scope):
            await send_error(scope, receive, send, 403, WRONG_ORIGIN)
        elif UNUSED.fullmatch(scope["path"]) or CONTROL_CHARACTER.search(scope["path"]):
            await send_error(scope, receive, send, 404, NOT_FOUND)
        else:
            await self.app(scope, receive, send)

    def answers_to(self, scope: Scope) -> bool:
        """Whether Host is this machine, the address that was connected to, or a name that is set.

        X-Forwarded-Host is ignored: a proxy passes Host on.
        """
        values = Headers(scope=scope).getlist("host")
        match = HOST.fullmatch(values[0].lower()) if len(values) == 1 else None
        if match is None:
            return False
        host = _plain(match["host"])
        if is_loopback(host) or host in self.hosts:
            return True
        if address := ip_of(host):
            return address == ip_of((scope.get("server") or ("",))[0])
        _, _, domain = host.partition(".")
        return bool(domain) and f"*.{domain}" in self.hosts


def is_same_origin(scope: Scope) -> bool:
    """Whether the request comes from a page of this server, from a link, or from no browser."""
    headers = Headers(scope=scope)
    origins = headers.getlist("origin")
    if origins:
        return len(origins) == 1 and _names_host(origins[0], headers.get("host", ""))
    if headers.get("sec-fetch-site", "none") in {"none", "same-origin"}:
        return True
    is_visit = headers.get("sec-fetch-mode") == "navigate"
    return scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} and is_visit


def _names_host(origin: str, host: str) -> bool:
    """Whether both name one server; the scheme may differ, since a proxy may end TLS."""
    theirs, ours = ORIGIN.fullmatch(origin.lower()), HOST.fullmatch(host.lower())
    if theirs is None or ours is None:
        return False
    default = PORTS[theirs["scheme"]]
    is_same_name = _plain(theirs["host"]) == _plain(ours["host"])
    return is_same_name and (theirs["port"] or default) == (ours["port"] or default)


def _plain(host: str) -> str:
    """The host for comparison: lower case, no brackets, no dot at the end."""
    return host.strip().lower().strip("[]").removesuffix(".")
