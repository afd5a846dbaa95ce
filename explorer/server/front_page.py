"""The one HTML page of Streamlit, with the address of the server.

Without it a browser that opens `/heads` asks `/heads/_stcore/health` first, fails, and asks the
server's root only then.
"""

import base64
import hashlib
import re
from importlib.resources import files

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.app.page_table import ROWS

ADDRESS = (
    "window.__streamlit={BACKEND_BASE_URL:location.origin"
    f"+location.pathname.replace(/\\/({'|'.join(ROWS)})\\/?$/,'')}}"
)
"""A script: the address of this page without the name of a page of the app."""
CLOSED_MENU = (
    "if(matchMedia('(pointer:coarse) and ((max-width:760px) or (max-height:500px))')"
    ".matches)localStorage.setItem('stSidebarCollapsed-',true)"
)
"""A script: on a phone the menu is closed at first, also on its side, where Streamlit opens it."""
CHARSET = '<meta charset="UTF-8" />'
PAGE = (
    (files("streamlit") / "static" / "index.html")
    .read_text("utf-8")
    .replace(CHARSET, f"{CHARSET}<script>{ADDRESS}</script><script>{CLOSED_MENU}</script>", 1)
    .encode()
)


def inline_scripts() -> str:
    """The hashes of the scripts inside the page, for the security policy."""
    bodies = re.findall(rb"<script>(.*?)</script>", PAGE, flags=re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(body).digest()) for body in bodies]
    return " ".join(f"'sha256-{digest.decode()}'" for digest in digests)


class FrontPage:
    """Sends the page in place of Streamlit's own; every other answer is left alone."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_replaced = False

        async def send_page(message: Message) -> None:
            nonlocal is_replaced
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                is_html = headers.get("content-type", "").startswith("text/html")
                is_replaced = is_html and message["status"] == 200
                if is_replaced:
                    for name in ("content-encoding", "etag", "last-modified"):
                        del headers[name]
                    headers["content-length"] = str(len(PAGE))
            elif is_replaced:
                if message.get("more_body"):
                    return
                body = b"" if scope["method"] == "HEAD" else PAGE
                message = {"type": "http.response.body", "body": body}
            await send(message)

        is_page = scope["type"] == "http" and "." not in scope["path"].rpartition("/")[2]
        await self.app(scope, receive, send_page if is_page else send)
