"""How many readers are connected, in all and from one address; the next one is told so."""

from __future__ import annotations

from collections import Counter

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.app.limits import SESSIONS, SESSIONS_OF_ADDRESS
from explorer.app.reader import key_in, network_of
from explorer.server import open_files
from explorer.server.refusals import reads_pages, refuse

AGAIN = "60"
"""Seconds after which a program may ask again."""


class Crowd:
    """Refuses a WebSocket, and the page to someone new, when there is no room for one more."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.connected = 0
        self.by_address: Counter[str] = Counter()
        self.by_reader: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wants_in = scope["type"] == "websocket" or _is_page(scope)
        if not wants_in:
            await self.app(scope, receive, send)
        elif sentence := self.no_room_for(scope):
            await refuse(scope, receive, send, 503, sentence, retry_after=AGAIN)
        elif scope["type"] == "websocket":
            await self._count(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def no_room_for(self, scope: Scope) -> str:
        """The sentence for whoever comes; empty where there is room, or the page is one's own.

        Who loads the page again leaves with the old connection first.
        """
        if scope["type"] == "http" and self.by_reader[key_in(HTTPConnection(scope).cookies)]:
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


def _is_page(scope: Scope) -> bool:
    """Whether it asks for a page; what a page is made of is for those who have it."""
    is_read = scope["type"] == "http" and scope["method"] in {"GET", "HEAD"}
    return is_read and reads_pages(scope)
