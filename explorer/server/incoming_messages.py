"""What connections say: only messages, only those for readers, not too many, and not too much."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from weakref import WeakValueDictionary

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.server.crowd import network
from explorer.system.limits import MESSAGE_RATE, MESSAGES_BYTES, NETWORK_SHARE

log = logging.getLogger("explorer")

LARGE = 50_000
"""Bytes that count as one more message; a longer one is kept in memory that is counted."""

KEPT_AFTER = 180
"""Seconds for which a session is kept at most once its reader has left."""

NO_MESSAGE, TOO_LONG = 1002, 1009
"""Codes with which a WebSocket is closed."""

OF_A_NETWORK = 10
"""Connections of one network that may say as much as one may; the others share that with them."""

AT_ONCE = 5
"""Seconds' worth of messages that may come in a moment: an arrow key that is held down."""


class Messages:
    """Closes a connection that says what is no message, and slows one that says too much.

    `is_for_readers` is asked about each; ValueError says that it is none. Who waits is not read
    from either, so what that one goes on sending fills its own network and no memory here. But a
    session keeps what was said last, in several forms, so long messages are counted.
    """

    def __init__(self, app: ASGIApp, is_for_readers: Callable[[bytes], bool]) -> None:
        self.app = app
        self.is_for_readers = is_for_readers
        self._held = Counter[str]()
        """By network, the bytes of the longest message of each of its connections."""
        self._paces = WeakValueDictionary[str, Pace]()
        """By network, while it has a connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        whose, longest = network(scope), 0
        theirs = self._paces.setdefault(whose, Pace(OF_A_NETWORK * MESSAGE_RATE.most))
        paces = Pace(MESSAGE_RATE.most), theirs
        was_closed = False

        async def send_while_open(message: Message) -> None:
            if not was_closed:
                await send(message)

        async def close(code: int, why: str) -> Message:
            nonlocal was_closed
            was_closed = True
            await send({"type": "websocket.close", "code": code, "reason": why})
            return {"type": "websocket.disconnect", "code": code}

        async def receive_checked() -> Message:
            nonlocal longest
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                try:
                    data = _bytes(message)
                    size = len(data)
                    now, counts_as = loop.time(), 1 + size // LARGE
                    await asyncio.sleep(max(pace.wait(now, counts_as) for pace in paces))
                    is_heard = self.is_for_readers(data)
                except ValueError as error:
                    log.warning("A connection was closed, since it sent what is no message.")
                    return await close(NO_MESSAGE, str(error))
                if is_heard and size > max(longest, LARGE):
                    if not self._has_room(whose, size - longest):
                        return await close(TOO_LONG, MESSAGES_BYTES.refusal())
                    self._held[whose] += size - longest
                    longest = size
                if is_heard:
                    return message

        try:
            await self.app(scope, receive_checked, send_while_open)
        finally:
            loop.call_later(KEPT_AFTER, self._forget, whose, longest)

    def _has_room(self, whose: str, more: int) -> bool:
        """Whether so many bytes more may be kept for this network, and in all."""
        share = MESSAGES_BYTES.most * NETWORK_SHARE.most // 100
        in_all = self._held.total() + more
        return MESSAGES_BYTES.allows(in_all) and self._held[whose] + more <= share

    def _forget(self, whose: str, size: int) -> None:
        self._held[whose] -= size
        if self._held[whose] <= 0:
            del self._held[whose]


def _bytes(message: Message) -> bytes:
    """ValueError where it is text, of which Streamlit's page sends none."""
    data = message.get("bytes")
    if data is None:
        raise ValueError("This is text.")
    return bytes(data)


class Pace:
    """So many a second in the long run; some seconds' worth may come at once."""

    def __init__(self, rate: float) -> None:
        self.rate = max(rate, 1)
        self.paid_until = 0.0
        """When all that came would have come in step."""

    def wait(self, now: float, messages: int = 1) -> float:
        """Seconds for the one that comes now to wait; nought while it is not too many."""
        self.paid_until = max(self.paid_until, now - AT_ONCE) + messages / self.rate
        return max(0.0, self.paid_until - now)
