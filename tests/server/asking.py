"""A browser's request, or its WebSocket, to a middleware, as plain ASGI: no server."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from html import unescape
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.calls import run_in_thread

HERE = ("127.0.0.1", 8501)


@dataclass
class Answer:
    """What came back; status 101 for a WebSocket that was opened."""

    status: int = 0
    headers: Headers = field(default_factory=Headers)
    text: str = ""
    sent: list[dict[str, Any]] = field(default_factory=list)
    """The messages of an open WebSocket."""
    read: int = 0
    """Bytes of a body that were asked for."""

    @property
    def sentence(self) -> str:
        """What a refusal says, on its page or as it is."""
        if self.headers.get("content-type") == "application/json":
            return str(json.loads(self.text))
        on_page = re.search(r"<p>([^<]+)</p>", self.text)
        return unescape(on_page[1]) if on_page else self.text.strip()


class Inside:
    """The app behind a middleware: answers everything, and keeps what a WebSocket says to it."""

    def __init__(self, kind: str = "text/html", status: int = 200) -> None:
        self.kind, self.status = kind, status
        self.heard: list[bytes] = []
        self.let_go = asyncio.Event()
        self.let_go.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            head = [(b"content-type", self.kind.encode()), (b"cache-control", b"no-cache")]
            await send({"type": "http.response.start", "status": self.status, "headers": head})
            await send({"type": "http.response.body", "body": b"inside"})
            return
        await send({"type": "websocket.accept"})
        await receive()
        while (message := await receive())["type"] == "websocket.receive":
            self.heard.append(message["bytes"])
        await self.let_go.wait()


def scope_of(
    path: str = "/",
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "GET",
    kind: str = "http",
    client: str = "127.0.0.1",
    server: str = "127.0.0.1",
    scheme: str = "http",
) -> dict[str, Any]:
    """One request; a header with an empty value is left out."""
    named = {"host": "localhost:8501", "accept": "text/html"} | dict(headers or {})
    raw = [(name.encode(), value.encode("latin-1")) for name, value in named.items() if value]
    about = {"path": path, "headers": raw, "client": (client, 50_000), "server": (server, 8501)}
    if kind == "websocket":
        return {"type": kind, "extensions": {"websocket.http.response": {}}, **about}
    return {"type": kind, "method": method, "scheme": scheme, **about}


async def asked(
    app: ASGIApp,
    scope: dict[str, Any],
    messages: Iterable[Any] = (),
    body: Receive | None = None,
) -> Answer:
    """Ask inside a running loop; a WebSocket says these messages and leaves."""
    answer = Answer()
    said = [
        message if isinstance(message, dict) else {"type": "websocket.receive", "bytes": message}
        for message in messages
    ]
    events = [{"type": "websocket.connect"}, *said, {"type": "websocket.disconnect", "code": 1001}]
    coming = iter(events)

    async def receive() -> Any:
        if body is not None:
            message = await body()
            answer.read += len(message.get("body", b""))
            return message
        return next(coming) if scope["type"] == "websocket" else {"type": "http.request"}

    async def send(message: Any) -> None:
        kind = message["type"]
        if kind.endswith("response.start"):
            answer.status, answer.headers = message["status"], Headers(raw=message["headers"])
        elif kind.endswith("response.body"):
            answer.text += message.get("body", b"").decode()
        elif kind == "websocket.accept":
            answer.status = 101
        else:
            answer.sent.append(message)

    await app(scope, receive, send)
    return answer


def ask(app: ASGIApp, scope: dict[str, Any], messages: Iterable[Any] = ()) -> Answer:
    """Ask in a loop of its own."""
    return run_in_thread(asked(app, scope, messages))


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that waits for others, in a loop of its own."""

    @wraps(test)
    def run(*given: Any, **named: Any) -> None:
        run_in_thread(test(*given, **named))

    return run
