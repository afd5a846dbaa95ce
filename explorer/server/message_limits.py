"""Limits on WebSockets: on small frames, on the kinds of messages, and on their size and rate.

A proxy passes a WebSocket on as bytes, so it cannot set these limits.
"""

import asyncio
import logging
from asyncio import Transport
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Any
from weakref import WeakValueDictionary

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol
from websockets.exceptions import ProtocolError
from websockets.frames import Frame

from explorer.server.connection_limits import client_network
from explorer.system.limits import MESSAGE_BYTES, MESSAGE_RATE, MESSAGES_BYTES, NETWORK_SHARE

log = logging.getLogger("explorer")

LARGE_MESSAGE = 50_000
"""Bytes that count as one more message; the memory of a longer message is counted."""
SESSION_SECONDS = 180
"""The longest time for which a session is kept after its reader has left."""
NOT_A_MESSAGE, TOO_LARGE = 1002, 1009
"""Codes with which a WebSocket is closed."""
CONNECTIONS_AT_FULL_RATE = 10
"""Connections of one network that may each use the whole rate; more of them share it."""
BURST_SECONDS = 5
"""Seconds' worth of messages that may come at once, for example from a held arrow key."""
SMALL_FRAME = 1_000
"""Bytes. Browsers cut long messages into larger frames than this."""
SMALL_FRAMES_PER_MESSAGE = 10
TOO_MANY_FRAMES = "Too many small frames in too short a time."

WEBSOCKET: Any = AutoWebSocketsProtocol
"""The class that uvicorn makes for each WebSocket."""
_connection_made = WEBSOCKET.connection_made


class RateLimit:
    """A rate per second; some seconds' worth may come at once."""

    def __init__(self, rate: float) -> None:
        self.rate = max(rate, 1)
        self.paid_until = 0.0
        """When everything so far would have come at the allowed rate."""

    def wait(self, now: float, count: int = 1) -> float:
        """Seconds that messages arriving now have to wait, or 0."""
        self.paid_until = max(self.paid_until, now - BURST_SECONDS) + count / self.rate
        return max(0.0, self.paid_until - now)


def limit_frames() -> None:
    """From now on a WebSocket that sends too many small frames, or too large a message, is closed.

    A quarter of a megabyte is read at once. In frames of six bytes it took the event loop up to a
    second, for each connection, and every reader waited.
    """
    WEBSOCKET.connection_made = connection_made


def connection_made(connection: Any, transport: Transport) -> None:
    """Begin as uvicorn does, and check each frame as it is parsed.

    Pings count too, since they are answered even if nobody reads the answers.
    """
    _connection_made(connection, transport)
    protocol = connection.conn
    protocol.max_message_size = MESSAGE_BYTES.most
    limit, recv_frame = RateLimit(SMALL_FRAMES_PER_MESSAGE * MESSAGE_RATE.most), protocol.recv_frame

    def recv_frame_in_time(frame: Frame) -> None:
        if len(frame.data) < SMALL_FRAME and limit.wait(monotonic()):
            raise ProtocolError(TOO_MANY_FRAMES)
        recv_frame(frame)

    protocol.recv_frame = recv_frame_in_time


class MessageLimits:
    """Closes a connection that sends anything but messages, and slows one that sends too many.

    `is_for_readers` checks each message and raises ValueError if it is none. Nothing is read from a
    connection that has to wait, so its data takes no memory here. A session keeps its last message
    in several forms, so the bytes of long messages are counted.
    """

    def __init__(self, app: ASGIApp, is_for_readers: Callable[[bytes], bool]) -> None:
        self.app = app
        self.is_for_readers = is_for_readers
        self._bytes = Counter[str]()
        """By network, the sum of the longest message of each of its connections."""
        self._rates = WeakValueDictionary[str, RateLimit]()
        """By network, while it has a connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        network, longest = client_network(scope), 0
        shared = RateLimit(CONNECTIONS_AT_FULL_RATE * MESSAGE_RATE.most)
        rates = RateLimit(MESSAGE_RATE.most), self._rates.setdefault(network, shared)
        is_closed = False

        async def send_while_open(message: Message) -> None:
            if not is_closed:
                await send(message)

        async def close(code: int, reason: str) -> Message:
            nonlocal is_closed
            is_closed = True
            await send({"type": "websocket.close", "code": code, "reason": reason})
            return {"type": "websocket.disconnect", "code": code}

        async def receive_checked() -> Message:
            nonlocal longest
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                try:
                    data = message.get("bytes")
                    if data is None:
                        raise ValueError("This is text, which no page sends.")
                    size = len(data)
                    now, count = loop.time(), 1 + size // LARGE_MESSAGE
                    await asyncio.sleep(max(rate.wait(now, count) for rate in rates))
                    is_for_readers = self.is_for_readers(data)
                except ValueError as error:
                    log.warning("A connection was closed because it sent something else.")
                    return await close(NOT_A_MESSAGE, str(error))
                if not is_for_readers:
                    continue
                if size > max(longest, LARGE_MESSAGE):
                    if not self._has_room(network, size - longest):
                        return await close(TOO_LARGE, MESSAGES_BYTES.refusal())
                    self._bytes[network] += size - longest
                    longest = size
                return message

        try:
            await self.app(scope, receive_checked, send_while_open)
        finally:
            loop.call_later(SESSION_SECONDS, self._release, network, longest)

    def _has_room(self, network: str, more: int) -> bool:
        """Whether so many bytes more may be kept for this network, and in all."""
        share = MESSAGES_BYTES.most * NETWORK_SHARE.most // 100
        fits = MESSAGES_BYTES.allows(self._bytes.total() + more)
        return fits and self._bytes[network] + more <= share

    def _release(self, network: str, size: int) -> None:
        self._bytes[network] -= size
        if self._bytes[network] <= 0:
            del self._bytes[network]
