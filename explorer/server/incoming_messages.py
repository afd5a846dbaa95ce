"""What one connection says: only messages, only those for readers, and not too many at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.app.limits import MESSAGE_RATE

log = logging.getLogger("explorer")

LARGE = 50_000
"""Bytes that count as one more message."""

AT_ONCE = 5
"""Seconds' worth of messages that may come in a moment: an arrow key that is held down."""


class Messages:
    """Closes a connection that says what is no message, and slows one that says too much.

    `is_for_readers` is asked about each; ValueError says that it is none. Who waits is not read
    from either, so what that one goes on sending fills its own network and no memory here.
    """

    def __init__(self, app: ASGIApp, is_for_readers: Callable[[bytes], bool]) -> None:
        self.app = app
        self.is_for_readers = is_for_readers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        pace = Pace(MESSAGE_RATE.most)
        was_closed = False

        async def send_while_open(message: Message) -> None:
            if not was_closed:
                await send(message)

        async def receive_checked() -> Message:
            nonlocal was_closed
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                try:
                    data = _bytes(message)
                    now = asyncio.get_running_loop().time()
                    await asyncio.sleep(pace.wait(now, 1 + len(data) // LARGE))
                    if self.is_for_readers(data):
                        return message
                except ValueError:
                    log.warning("A connection was closed, since it sent what is no message.")
                    was_closed = True
                    await send({"type": "websocket.close", "code": 1002})
                    return {"type": "websocket.disconnect", "code": 1002}

        await self.app(scope, receive_checked, send_while_open)


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
