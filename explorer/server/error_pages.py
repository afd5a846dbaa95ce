"""An error in one sentence: as a page for a browser, else as text; a WebSocket is not opened."""

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
HEALTH_CHECK = "/_stcore/health"
"""What an open page requests before it connects; it shows the body of an error if it is JSON."""


async def send_error(
    scope: Scope, receive: Receive, send: Send, status: int, sentence: str, **headers: str
) -> None:
    fields = {"connection": "close", "cache-control": "no-store"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    text = PlainTextResponse(f"{sentence}\n", status, fields)
    if scope["type"] == "http":
        answer: Response = text
        if accepts_html(scope):
            answer = HTMLResponse(page(sentence, "retry_after" in headers), status, fields)
        elif is_health_check(scope):
            answer = JSONResponse(sentence, status, fields)
        await answer(scope, receive, send)
    elif "websocket.http.response" in scope.get("extensions", {}):
        kind = "websocket.http.response"
        await send({"type": f"{kind}.start", "status": status, "headers": text.raw_headers})
        await send({"type": f"{kind}.body", "body": text.body})
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": sentence[:120]})


def page(sentence: str, offers_retry: bool) -> str:
    """A page that loads nothing else from the server, which may be full."""
    again = AGAIN if offers_retry else ""
    return PAGE.replace("{sentence}", escape(sentence)).replace("{again}", again)


def accepts_html(scope: Scope) -> bool:
    """Whether a browser opens this address as a page."""
    return "text/html" in Headers(scope=scope).get("accept", "")


def is_health_check(scope: Scope) -> bool:
    """Whether an open page checks that the server is there, to connect to it."""
    return str(scope["path"]).endswith(HEALTH_CHECK)
