"""One sentence instead of an answer: a page to a browser, else text; a WebSocket is not opened."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from explorer.charts.theme import DARK, LIGHT

PAGE = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Attention explorer</title>
<style>
:root {{ color-scheme: light dark; background: {LIGHT.background}; color: {LIGHT.text}; }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 20vh auto; max-width: 32rem; padding: 1rem; }}
h1 {{ font-size: 1.25rem; }}
a {{ color: inherit; }}
@media (prefers-color-scheme: dark) {{
  :root {{ background: {DARK.background}; color: {DARK.text}; }}
}}
</style>
<h1>Attention explorer</h1>
<p>{{sentence}}</p>
{{again}}
</html>
"""
AGAIN = '<p><a href="">Try again</a></p>'
LOOKS = "/_stcore/health"
"""What an open page asks for before it connects; of a refusal it shows what it can read as JSON."""


async def refuse(
    scope: Scope, receive: Receive, send: Send, status: int, sentence: str, **headers: str
) -> None:
    """Answer with this status and sentence; a WebSocket is not opened."""
    named = {"connection": "close", "cache-control": "no-store"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    text = PlainTextResponse(f"{sentence}\n", status, named)
    if scope["type"] == "http":
        answer: Response = text
        if reads_pages(scope):
            answer = HTMLResponse(page(sentence, named), status, named)
        elif looks_from_page(scope):
            answer = JSONResponse(sentence, status, named)
        await answer(scope, receive, send)
    elif "websocket.http.response" in scope.get("extensions", {}):
        kind = "websocket.http.response"
        await send({"type": f"{kind}.start", "status": status, "headers": text.raw_headers})
        await send({"type": f"{kind}.body", "body": text.body})
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": sentence[:120]})


def page(sentence: str, headers: Mapping[str, str]) -> str:
    """It needs nothing else of the server, which may be full."""
    again = AGAIN if "retry-after" in headers else ""
    return PAGE.replace("{sentence}", escape(sentence)).replace("{again}", again)


def reads_pages(scope: Scope) -> bool:
    """Whether a person's browser asks for a page, not a program or a part of one."""
    return "text/html" in Headers(scope=scope).get("accept", "")


def looks_from_page(scope: Scope) -> bool:
    """Whether an open page looks for the server, to connect to it."""
    return str(scope["path"]).endswith(LOOKS)
