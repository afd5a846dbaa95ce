"""The server: what is loaded before the first visitor, security headers, orderly ends.

Run it with `streamlit run app.py`.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import hashlib
import logging
import os
import re
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.app import streamlit_patches
from explorer.catalog import waiting
from explorer.downloads import background

if TYPE_CHECKING:
    from explorer.runs.cluster import Cluster

# Many readers' scripts want the interpreter at once, and the loop that talks to the browsers
# stands in the same queue: at 5 ms a turn it fell a second behind now and then.
sys.setswitchinterval(0.0005)

log = logging.getLogger("explorer")

# Read when torch is loaded. Every run of a page is a new thread, and with more than one
# OpenMP thread the first matrix product in each of them took 4 ms instead of 0.02.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Read when torch first takes memory: tensors of megabytes lie on large pages, where the kernel
# has them, and a published model writes some percent faster.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


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


class WarmUp:
    """Loads what every page needs while the first visitor's browser loads the frame."""

    def __init__(self) -> None:
        self.thread = threading.Thread(target=self._load, name="warm-up", daemon=True)
        self.cluster: Cluster | None = None

    def _load(self) -> None:
        try:
            import torch

            torch.set_num_threads(1)
            from explorer.app import bar

            bar.warm_up()
            from explorer.runs.cluster import cluster

            self.cluster = cluster()
            if self.cluster.was_left:  # otherwise the first who sees a form to train with starts it
                self.cluster.start()
        except Exception:
            log.exception("The warm-up ended early.")
        # Nothing that was loaded is garbage: do not search through it after every run.
        # No optimizer is made here, since only the workers train.
        gc.collect()
        gc.freeze()
        # Fifty readers set off a whole collection, 60 ms, every two seconds; now one in fourteen.
        gc.set_threshold(2_000, 10, 25)

    def end(self) -> None:
        background.end_all()
        self.thread.join(timeout=30)
        if self.cluster is not None:
            self.cluster.close()


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[None]:
    waiting.end_runs_by(streamlit_patches.end_if_unwanted)
    warm_up = WarmUp()
    warm_up.thread.start()
    yield
    await asyncio.to_thread(warm_up.end)


app = st.App(
    "explorer/app/shell.py",
    lifespan=lifespan,
    middleware=[Middleware(SecurityHeaders)],
)
