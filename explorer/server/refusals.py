"""One sentence instead of an answer, to a browser's request and to a WebSocket alike."""

from __future__ import annotations

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send


async def refuse(
    scope: Scope, receive: Receive, send: Send, status: int, sentence: str, **headers: str
) -> None:
    """Answer with this status and sentence; a WebSocket is not opened."""
    named = {"connection": "close", "cache-control": "no-store"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    answer = PlainTextResponse(f"{sentence}\n", status, named)
    if scope["type"] == "http":
        await answer(scope, receive, send)
    elif "websocket.http.response" in scope.get("extensions", {}):
        kind = "websocket.http.response"
        await send({"type": f"{kind}.start", "status": status, "headers": answer.raw_headers})
        await send({"type": f"{kind}.body", "body": answer.body})
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": sentence[:120]})
