"""Whether this server takes readers: /healthz, and after SIGTERM time for them to go elsewhere.

A proxy asks the next replica where one answers 503 (`deploy/nginx.conf`). So one that ends says so
to whoever comes, and closes the lines of those who are here one after another: their browsers open
new ones by themselves, which lead to the others.
"""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import threading
from collections.abc import Callable
from types import FrameType

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.server.refusals import refuse
from explorer.system.limits import DRAIN_SECONDS

log = logging.getLogger("explorer")

HEALTH = "/healthz"
ENDING = "This server is shutting down: try again in a minute."
SERVICE_RESTART = 1012
FOR_THOSE_HERE = re.compile(r"/(static|media|component|_stcore/(upload_file|bidi-components))/.*")
"""What a page that is open already may still ask for."""


class Line:
    """One reader's WebSocket."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_closed = False

    async def send(self, message: Message) -> None:
        """Pass it on, unless the line was closed meanwhile."""
        if not self.is_closed:
            await self._send(message)

    async def close(self) -> None:
        self.is_closed = True
        await self._send({"type": "websocket.close", "code": SERVICE_RESTART})


class Drain:
    """Who is connected, and whether they are to go. One for a server, on its own loop."""

    def __init__(self) -> None:
        self.has_begun = False
        self.lines: dict[Line, None] = {}  # in the order in which they came
        self._leading: asyncio.Task[None] | None = None
        self._end: Callable[[], None] = lambda: None
        """What the server does at SIGTERM otherwise."""

    def wait_for_sigterm(self) -> None:
        """From now on the first SIGTERM drains; a second, or Ctrl-C, ends the server at once."""
        if threading.current_thread() is not threading.main_thread():
            return  # nobody hears a signal in another
        loop, usual = asyncio.get_running_loop(), signal.getsignal(signal.SIGTERM)
        if not callable(usual):
            return  # nothing else would end in order
        self._end = lambda: usual(signal.SIGTERM, None)

        def hear(_number: int, _frame: FrameType | None) -> None:
            if self.has_begun:
                self._end()
            else:
                loop.call_soon_threadsafe(self.begin)

        signal.signal(signal.SIGTERM, hear)

    def begin(self) -> None:
        """Take nobody any more, and lead those who are here elsewhere."""
        log.warning("Draining, then ending.", extra={"readers": len(self.lines)})
        self.has_begun = True
        self._leading = asyncio.ensure_future(self.lead_away())

    async def lead_away(self) -> None:
        """Close one line after another, evenly over the time there is; then end."""
        each = DRAIN_SECONDS.most / max(1, len(self.lines))
        while self.lines:
            line = next(iter(self.lines))
            del self.lines[line]
            try:
                await line.close()
            except Exception:
                log.exception("A line could not be closed.")
            if self.lines:
                await asyncio.sleep(each)
        self._end()


class Draining:
    """Answers /healthz; while draining it sends away who comes, so that a proxy asks another."""

    def __init__(self, app: ASGIApp, drain: Drain) -> None:
        self.app = app
        self.drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == HEALTH:
            said = ("draining", 503) if self.drain.has_begun else ("ok", 200)
            answer = PlainTextResponse(f"{said[0]}\n", said[1], {"cache-control": "no-store"})
            await answer(scope, receive, send)
        elif self.drain.has_begun and _comes_in(scope):
            await refuse(scope, receive, send, 503, ENDING, retry_after="5")
        elif scope["type"] == "websocket":
            line = Line(send)
            self.drain.lines[line] = None
            try:
                await self.app(scope, receive, line.send)
            finally:
                self.drain.lines.pop(line, None)
        else:
            await self.app(scope, receive, send)


def _comes_in(scope: Scope) -> bool:
    """Whether it is from somebody new, or who looks whether the server is there again."""
    if scope["type"] == "http":
        return not FOR_THOSE_HERE.fullmatch(scope["path"])
    return bool(scope["type"] == "websocket")
