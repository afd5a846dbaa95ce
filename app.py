"""The server: what is loaded before the first visitor, security headers, orderly ends.

Run it with `streamlit run app.py`.
"""

from __future__ import annotations

import base64
import gc
import hashlib
import logging
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("explorer")


def inline_scripts() -> str:
    """The scripts inside Streamlit's one HTML page, by their hashes."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_text()
    bodies = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(body.encode()).digest()) for body in bodies]
    return " ".join(f"'sha256-{digest.decode()}'" for digest in digests)


POLICY = {
    "default-src": "'self'",
    "script-src": f"'self' {inline_scripts()} 'wasm-unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "worker-src": "'self' blob:",
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
    """Adds the headers to every answer; plain ASGI, so that nothing is buffered."""

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


class Warmth:
    """Loads what every page needs while the first visitor's browser loads the frame."""

    def __init__(self) -> None:
        self.thread = threading.Thread(target=self._warm, name="warm-up", daemon=True)
        self.cluster = None
        self.ended = threading.Event()

    def _warm(self) -> None:
        try:
            import torch

            torch.set_num_threads(1)
            self._read_first_example()
            self._start_cluster()
        except Exception:  # noqa: BLE001 - without the warm-up the app is slower, not broken
            log.exception("the warm-up ended early")
        gc.collect()
        gc.freeze()  # nothing loaded so far is garbage; do not look at it after every run

    def _read_first_example(self) -> None:
        from explorer import library, reading

        shelf = [entry for entry in library.entries() if not entry.fault]
        names = [entry.name for entry in shelf]
        if "translation" in names or names:
            first = "translation" if "translation" in names else names[0]
            reading.first_look(library.open_model(first))

    def _start_cluster(self) -> None:
        from explorer.runs.cluster import cluster

        if not self.ended.is_set():
            cluster().start()

    def close(self) -> None:
        self.ended.set()
        self.thread.join(timeout=20)


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    warmth = Warmth()
    warmth.thread.start()
    yield
    warmth.close()


app = st.App(
    "explorer/shell.py",
    lifespan=lifespan,
    middleware=[Middleware(SecurityHeaders)],
)
