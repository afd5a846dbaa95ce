"""Headers of every answer: what the page may load, and who may frame it."""

import base64
import hashlib
import re
from importlib.resources import files

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


def inline_scripts() -> str:
    """The hashes of the scripts inside Streamlit's one HTML page."""
    page = files("streamlit") / "static" / "index.html"
    bodies = re.findall(r"<script>(.*?)</script>", page.read_text("utf-8"), flags=re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(body.encode()).digest()) for body in bodies]
    return " ".join(f"'sha256-{digest.decode()}'" for digest in digests)


POLICY = {
    "default-src": "'self'",
    "script-src": f"'self' {inline_scripts()} 'wasm-unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self'",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "worker-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'self'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class SecurityHeaders:
    """Adds the headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)
