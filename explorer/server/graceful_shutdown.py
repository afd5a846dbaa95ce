"""The server's health (/healthz), and a graceful end after SIGTERM.

A proxy asks the next replica when one answers 503 (`deploy/nginx.conf`). A replica that shuts down
answers 503 to newcomers and closes the WebSockets of its readers one after another; their browsers
reconnect by themselves, to other replicas.
"""

import asyncio
import logging
import re
import signal
import threading
from collections.abc import Callable
from types import FrameType

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.server.error_pages import send_error
from explorer.system.limits import DRAIN_SECONDS

log = logging.getLogger("explorer")

HEALTH = "/healthz"
SHUTTING_DOWN = "This server is shutting down. Try again in a minute."
SERVICE_RESTART = 1012
OF_OPEN_PAGES = re.compile(r"/(static|media|component|_stcore/(upload_file|bidi-components))/.*")
"""What a page that is already open may still request."""


class Drain:
    """The connected readers of one server, and whether it is closing their connections."""

    def __init__(self) -> None:
        self.has_begun = False
        self.sockets: dict[object, Send] = {}
        """The open WebSockets in the order in which they connected; one is closed by its `send`."""
        self._task: asyncio.Task[None] | None = None
        self._end: Callable[[], None] = lambda: None
        """What the server would have done at SIGTERM."""

    def wait_for_sigterm(self) -> None:
        """From now on the first SIGTERM drains; a second, or Ctrl-C, ends the server at once."""
        if threading.current_thread() is not threading.main_thread():
            return  # other threads receive no signals
        loop, default = asyncio.get_running_loop(), signal.getsignal(signal.SIGTERM)
        if not callable(default):
            return  # nothing else would shut down in order
        self._end = lambda: default(signal.SIGTERM, None)

        def handle(_number: int, _frame: FrameType | None) -> None:
            if self.has_begun:
                self._end()
            else:
                loop.call_soon_threadsafe(self.begin)

        signal.signal(signal.SIGTERM, handle)

    def begin(self) -> None:
        """Accept no new readers, and close the connections of the others."""
        log.warning("Draining, then ending.", extra={"readers": len(self.sockets)})
        self.has_begun = True
        self._task = asyncio.ensure_future(self.close_sockets())

    async def close_sockets(self) -> None:
        """Close one WebSocket after another, evenly over the time there is; then end."""
        pause = DRAIN_SECONDS.most / max(1, len(self.sockets))
        while self.sockets:
            send = self.sockets.pop(next(iter(self.sockets)))
            try:
                await send({"type": "websocket.close", "code": SERVICE_RESTART})
            except Exception:
                log.exception("A WebSocket could not be closed.")
            if self.sockets:
                await asyncio.sleep(pause)
        self._end()


class GracefulShutdown:
    """Answers /healthz; refuses newcomers while draining, so that a proxy asks another replica."""

    def __init__(self, app: ASGIApp, drain: Drain) -> None:
        self.app = app
        self.drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == HEALTH:
            health, status = ("draining", 503) if self.drain.has_begun else ("ok", 200)
            answer = PlainTextResponse(f"{health}\n", status, {"cache-control": "no-store"})
            await answer(scope, receive, send)
        elif self.drain.has_begun and _is_newcomer(scope):
            await send_error(scope, receive, send, 503, SHUTTING_DOWN, retry_after="5")
        elif scope["type"] == "websocket":
            await self._stay(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _stay(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a reader until they leave or their WebSocket is closed; then send nothing more."""
        socket, sockets = object(), self.drain.sockets
        sockets[socket] = send

        async def send_while_open(message: Message) -> None:
            if socket in sockets:
                await send(message)

        try:
            await self.app(scope, receive, send_while_open)
        finally:
            sockets.pop(socket, None)


def _is_newcomer(scope: Scope) -> bool:
    """Whether it opens a page or a WebSocket, or checks that the server is there again."""
    if scope["type"] == "http":
        return not OF_OPEN_PAGES.fullmatch(scope["path"])
    return bool(scope["type"] == "websocket")
