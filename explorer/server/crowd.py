"""How many readers are connected, in all and from one address; the next one is told so."""

from __future__ import annotations

from collections import Counter

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.app.reader import key_in, network_of
from explorer.server import open_files
from explorer.server.refusals import looks_from_page, reads_pages, refuse
from explorer.system.limits import SESSIONS, SESSIONS_OF_ADDRESS

AGAIN = "60"
"""Seconds after which a program may ask again."""
RELOADS = {"max-age=0", "no-cache"}
"""What browsers say of a cache when a page is loaded again, and not when it is opened."""


class Crowd:
    """Refuses a WebSocket, and the page that would open one, when there is no room for one more."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.connected = 0
        self.by_address: Counter[str] = Counter()
        self.by_reader: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _wants_in(scope):
            await self.app(scope, receive, send)
        elif sentence := self.no_room_for(scope):
            await refuse(scope, receive, send, 503, sentence, retry_after=AGAIN)
        elif scope["type"] == "websocket":
            await self._count(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def no_room_for(self, scope: Scope) -> str:
        """The sentence for whoever comes; empty where there is room, or a page is loaded again.

        The old connection ends with the old page, and the new page takes its place.
        """
        if _is_reload(scope) and self.by_reader[key_in(HTTPConnection(scope).cookies)]:
            return ""
        if self.connected >= SESSIONS.most or open_files.are_scarce():
            return SESSIONS.refusal()
        if self.by_address[network(scope)] >= SESSIONS_OF_ADDRESS.most:
            return SESSIONS_OF_ADDRESS.refusal()
        return ""

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        address, reader = network(scope), key_in(HTTPConnection(scope).cookies)
        self.connected += 1
        self.by_address[address] += 1
        self.by_reader[reader] += bool(reader)
        try:
            await self.app(scope, receive, send)
        finally:
            self.connected -= 1
            for counted, key in ((self.by_address, address), (self.by_reader, reader)):
                counted[key] -= 1
                if counted[key] <= 0:
                    del counted[key]


def network(scope: Scope) -> str:
    """Whose connection it is."""
    host, _ = scope.get("client") or ("", 0)
    return network_of(str(host))


def _wants_in(scope: Scope) -> bool:
    """Whether it asks for a connection or a page; what a page is made of is for who has it."""
    if scope["type"] != "http":
        return bool(scope["type"] == "websocket")
    return _is_page(scope) or looks_from_page(scope)


def _is_page(scope: Scope) -> bool:
    return scope["method"] in {"GET", "HEAD"} and reads_pages(scope)


def _is_reload(scope: Scope) -> bool:
    is_page = scope["type"] == "http" and _is_page(scope)
    return is_page and Headers(scope=scope).get("cache-control") in RELOADS
