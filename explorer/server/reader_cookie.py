"""Sets the cookie with a reader's key when their browser opens its first page.

A header of each WebSocket names its owner, and Streamlit compares it before it continues a session
(`server.trustedUserHeaders` in `.streamlit/config.toml`). Otherwise anyone who knows the ID of a
session could take it over with all that its reader typed and owns.
"""

from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.app.reader import BY_TLS, COOKIE, key_in, new_key, owner_of

SECONDS = 365 * 24 * 3600
OWNER = "x-explorer-owner"


class ReaderCookie:
    """Adds the cookie to a page for a reader without a key; see `explorer.app.reader`.

    It is Lax: browsers do not send a strict one when a reader follows a link from another site, so
    the page would give that reader a new key, and what they made with the old one would be lost.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self.app(with_owner(scope), receive, send)
            return
        if scope["type"] != "http" or _has_key(scope):
            await self.app(scope, receive, send)
            return

        async def send_with_key(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_page(scope, message):
                headers = MutableHeaders(scope=message)
                headers.append("set-cookie", cookie(scope))
                headers["cache-control"] = "private, no-cache"  # a key is for one reader
            await send(message)

        await self.app(scope, receive, send_with_key)


def with_owner(scope: Scope) -> Scope:
    """The request with its owner in the header, in place of any that came from outside."""
    others = [pair for pair in scope["headers"] if pair[0].lower() != OWNER.encode()]
    key = key_in(HTTPConnection(scope).cookies)
    ours = [(OWNER.encode(), owner_of(key).encode())] if key else []
    return {**scope, "headers": [*others, *ours]}


def cookie(scope: Scope) -> str:
    """A header with a new key, which no script can read; a key set under TLS is sent only there."""
    value = f"{new_key()}; Path=/; Max-Age={SECONDS}; HttpOnly; SameSite=Lax"
    return f"{BY_TLS}={value}; Secure" if _is_by_tls(scope) else f"{COOKIE}={value}"


def _has_key(scope: Scope) -> bool:
    """Over TLS a cookie without TLS does not count: another server on this host may have set it."""
    cookies = HTTPConnection(scope).cookies
    return bool(key_in({BY_TLS: cookies.get(BY_TLS, "")} if _is_by_tls(scope) else cookies))


def _is_by_tls(scope: Scope) -> bool:
    return "https" in {scope.get("scheme"), Headers(scope=scope).get("x-forwarded-proto", "")}


def _is_page(scope: Scope, answer: Message) -> bool:
    """Whether the answer is a page, or says that the browser's copy of it is current."""
    if answer["status"] == HTTPStatus.NOT_MODIFIED:
        return "text/html" in Headers(scope=scope).get("accept", "")
    is_html = Headers(raw=answer["headers"]).get("content-type", "").startswith("text/html")
    return bool(answer["status"] == HTTPStatus.OK) and is_html
