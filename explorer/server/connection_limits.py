"""Limits on connections, in all and from one network, and on the open files that they need."""

import logging
import os
import socket
from asyncio import Transport
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import h11
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from explorer.app.reader import key_in, network_of
from explorer.server.error_pages import accepts_html, is_health_check, send_error
from explorer.system.limits import SESSIONS, SESSIONS_OF_ADDRESS
from explorer.system.operating_system import INFINITY, limit, limits

RETRY_AFTER = "60"
"""Seconds after which a program may ask again."""
RELOADS = {"max-age=0", "no-cache"}
"""The cache-control of a browser that reloads a page; it sends neither when it opens one."""
MOST_FILES = 65_536
"""Without a hard limit the system allows a billion, and a child process that closes all files
would loop over them."""
RESERVED_FILES = 256
"""Files for models, runs and sockets in a handshake."""

MOST_HEAD_LINES = 200
"""Lines of a request before its body: browsers send about 20, and each costs time to parse."""
REFUSAL = (
    "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: {seconds}\r\n"
    "content-type: text/plain; charset=utf-8\r\n\r\n{sentence}\n"
)
CAUSED_BY_STRANGERS = {
    "ASGI callable returned without completing handshake.",  # a WebSocket was refused
    "Invalid HTTP request received.",
}
"""Messages that uvicorn logs for bad requests, which could fill the log."""

HTTP: Any = AutoHTTPProtocol
"""The class that uvicorn makes for each connection."""
_connection_made = HTTP.connection_made


class ConnectionLimits:
    """Refuses a WebSocket, and the page that would open one, when the server is full."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.connected = 0
        self.by_network: Counter[str] = Counter()
        self.by_reader: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_socket = scope["type"] == "websocket"
        needs_room = is_socket  # or a page, to which files and uploads belong
        if scope["type"] == "http":
            needs_room = _is_page(scope) or is_health_check(scope)
        if needs_room and (sentence := self.refusal(scope)):
            await send_error(scope, receive, send, 503, sentence, retry_after=RETRY_AFTER)
        elif is_socket:
            await self._count(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def refusal(self, scope: Scope) -> str:
        """Why a request is refused; empty if there is room or a connected reader reloads a page.

        The old page disconnects when it is reloaded, so the new one takes its place.
        """
        is_page = scope["type"] == "http" and _is_page(scope)
        is_reload = is_page and Headers(scope=scope).get("cache-control") in RELOADS
        if is_reload and self.by_reader[key_in(HTTPConnection(scope).cookies)]:
            return ""
        if self.connected >= SESSIONS.most or files_are_scarce():
            return SESSIONS.refusal()
        if self.by_network[client_network(scope)] >= SESSIONS_OF_ADDRESS.most:
            return SESSIONS_OF_ADDRESS.refusal()
        return ""

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = key_in(HTTPConnection(scope).cookies)
        counts = [(self.by_network, client_network(scope))] + [(self.by_reader, key)] * bool(key)
        self.connected += 1
        for counter, name in counts:
            counter[name] += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.connected -= 1
            for counter, name in counts:
                counter[name] -= 1
                if not counter[name]:
                    del counter[name]


def client_network(scope: Scope) -> str:
    host, _ = scope.get("client") or ("", 0)
    return network_of(str(host))


def _is_page(scope: Scope) -> bool:
    return scope["method"] in {"GET", "HEAD"} and accepts_html(scope)


def raise_file_limit() -> int:
    """Raise the soft limit of open files (often 1,024: 160 readers) to the hard one; return it."""
    soft, hard = limits("NOFILE")
    most = MOST_FILES if hard == INFINITY else min(hard, MOST_FILES)
    if soft != INFINITY and soft < most:
        limit(NOFILE=most)
        return most
    return soft


def files_are_scarce() -> bool:
    """Whether nearly all files that the process may open are open; False if the system hides it."""
    soft, _ = limits("NOFILE")
    try:
        used = len(os.listdir("/proc/self/fd"))
    except OSError:
        return False
    return soft != INFINITY and used > soft - min(RESERVED_FILES, soft // 4)


def limit_connections() -> None:
    """From now on connections take at most half of the files: each session opens others.

    The proxy bounds how many connections an address has and how slow they may be.
    """
    HTTP.connection_made = connection_made
    logging.getLogger("uvicorn.error").addFilter(lambda line: line.msg not in CAUSED_BY_STRANGERS)


def connection_made(connection: Any, transport: Transport) -> None:
    """Begin as uvicorn does, and refuse a connection beyond the limit with a sentence."""
    _connection_made(connection, transport)
    line = transport.get_extra_info("socket")
    if line is not None and line.family in (socket.AF_INET, socket.AF_INET6):
        # asyncio sets this only where a socket names its protocol, which Streamlit's does not. The
        # small messages of a run then wait for a browser's delayed acknowledgement: 40 ms.
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    parser = getattr(connection, "conn", None)
    if isinstance(parser, h11.Connection):
        parser.next_event = partial(next_event, parser, parser.next_event)  # type: ignore[method-assign]
    soft, _ = limits("NOFILE")
    if soft != INFINITY and len(connection.connections) > soft // 2:
        transport.write(REFUSAL.format(seconds=RETRY_AFTER, sentence=SESSIONS.refusal()).encode())
        transport.close()


def next_event(parser: h11.Connection, parse: Callable[[], Any]) -> Any:
    """Refuse a request whose head has too many lines before the lines are parsed."""
    if parser.their_state is h11.IDLE:
        head, _, _ = parser.trailing_data[0].partition(b"\r\n\r\n")
        if head.count(b"\n") > MOST_HEAD_LINES:
            raise h11.RemoteProtocolError("The head of this request has too many lines.")
    return parse()
