"""Bounds on connections below the application: how many, how long silent, in how small pieces.

Uvicorn gives a connection that never asks for anything all the time in the world, and takes
messages as long as the server may send. Its settings are not ours: `streamlit run` has made them
before it loads the app. So the bounds are set where a connection begins.
"""

from __future__ import annotations

import logging
from asyncio import Transport
from collections.abc import Callable
from typing import Any
from weakref import ref

from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol

from explorer.server.small_pieces import bound_frames, bound_requests
from explorer.system.limits import MESSAGE_BYTES, SESSIONS, SESSIONS_OF_ADDRESS, Limit
from explorer.system.operating_system import limits

SILENT_SECONDS = 30
"""A connection on which nothing happened from one look to the next is closed."""

OF_ONE_READER = 3
"""Connections of a browser that loads a page, in the mean: there are up to six for a moment."""

FULL = (
    "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 60\r\n"
    "content-type: text/plain; charset=utf-8\r\n\r\n{sentence}\n"
)

WHAT_STRANGERS_CAUSE = (
    "ASGI callable returned without completing handshake.",  # a WebSocket was refused
    "Invalid HTTP request received.",
)
"""Lines of uvicorn's, one for each request: whoever likes could fill the log with them."""

PROTOCOL: Any = AutoHTTPProtocol
"""That of h11, or of httptools where that is installed: uvicorn takes the faster one by itself."""

WEBSOCKET: Any = AutoWebSocketsProtocol
"""What takes a connection over once it is one."""

_made_by_uvicorn, _websocket_made_by_uvicorn = PROTOCOL.connection_made, WEBSOCKET.connection_made


def bound() -> None:
    """From now on connections of this process are bound."""
    PROTOCOL.connection_made, WEBSOCKET.connection_made = begin, begin_websocket
    logging.getLogger("uvicorn.error").addFilter(is_noted)


def is_noted(record: logging.LogRecord) -> bool:
    """Whether a line of uvicorn's says something of this server."""
    return record.msg not in WHAT_STRANGERS_CAUSE


def begin(connection: Any, transport: Transport) -> None:
    """A connection was made: one too many is told so and closed."""
    connection.config.ws_max_size = MESSAGE_BYTES.most
    _made_by_uvicorn(connection, transport)
    bound_requests(connection)
    if limit := too_many(connection):
        transport.write(FULL.format(sentence=limit.refusal()).encode())
        transport.close()
    else:
        _look_later(connection)


def begin_websocket(connection: Any, transport: Transport) -> None:
    """A connection has become a WebSocket."""
    _websocket_made_by_uvicorn(connection, transport)
    bound_frames(connection)
    _look_later(connection)


def too_many(connection: Any) -> Limit | None:
    """The limit that this connection breaks, if any; a trusted proxy's are many readers'.

    Half of the files are for connections, since each reader's session has others open.
    """
    soft, _ = limits("NOFILE")
    if len(connection.connections) > soft // 2:
        return SESSIONS
    peer = _peer(connection)
    proxies = getattr(connection.config.loaded_app, "trusted_hosts", ())
    if peer in proxies:
        return None
    theirs = sum(_peer(each) == peer for each in connection.connections)
    return SESSIONS_OF_ADDRESS if theirs > OF_ONE_READER * SESSIONS_OF_ADDRESS.most else None


def _look_later(connection: Any, seen: Any = None) -> None:
    """What one that has ended meanwhile had received is not kept until then."""
    connection.loop.call_later(SILENT_SECONDS, look, ref(connection), seen)


def look(known: Callable[[], Any], seen: Any = None) -> None:
    """Close it if since the last look nothing was asked, and nothing of an answer was taken.

    A WebSocket may be silent, since it is pinged. Closed, it waits for its last words to be taken.
    """
    connection = known()
    if connection is None or connection not in connection.connections:
        return  # it has ended, or has become a WebSocket
    transport, cycle = connection.transport, getattr(connection, "cycle", None)
    waiting = transport.get_write_buffer_size()
    is_answering = cycle is not None and not cycle.response_complete
    may_be_silent = is_answering or isinstance(connection, WEBSOCKET)
    now = (cycle, waiting)
    if now == seen and (waiting or not may_be_silent):
        transport.abort()
    else:
        _look_later(connection, now)


def _peer(connection: Any) -> str:
    return connection.client[0] if connection.client else ""
