"""Streamlit's own routes and memory of uploads behind the limits, without a server.

A body comes piece by piece, as a server hands it on, so that a test sees what was asked for.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Router
from starlette.types import Message, Receive
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.web.server.starlette import starlette_routes

from explorer.app import reader, streamlit_patches
from explorer.app.received_uploads import ReceivedUploads
from explorer.server import upload_limits
from explorer.server.upload_limits import UploadLimits
from explorer.system import limits
from tests.server.asking import Answer, asked, scope_of

MB = limits.MB
HEAD = (
    b'--boundary\r\nContent-Disposition: form-data; name="f"; filename="config.json"\r\n'
    b"Content-Type: application/json\r\n\r\n"
)
TAIL = b"\r\n--boundary--\r\n"
AROUND = len(HEAD) + len(TAIL)
BLOCK = bytes(1 << 16)
numbers = count(1)


@dataclass
class World:
    """What the limits stand before, and the sessions that are connected."""

    files: MemoryUploadedFileManager
    received: ReceivedUploads = field(default_factory=ReceivedUploads)
    connected: dict[str, str] = field(default_factory=dict)
    """The key of each session that is connected."""
    networks: dict[str, str] = field(default_factory=dict)
    """The address that a session comes from, where it is another."""
    run: list[str] = field(default_factory=list)
    """Sessions whose page was run again."""

    def __post_init__(self) -> None:
        runtime: Any = SimpleNamespace(is_active_session=self.connected.__contains__)
        routes = starlette_routes.create_upload_routes(runtime, self.files, None)
        self.app = UploadLimits(ExceptionMiddleware(Router(routes)), self.received)

    @property
    def held(self) -> int:
        """Bytes that Streamlit keeps."""
        stored = self.files.file_storage.values()
        return sum(len(each.data) for files in stored for each in files.values())

    async def put(
        self,
        session: str,
        size: int = 0,
        *,
        file: str = "",
        body: Iterator[bytes] | None = None,
        headers: dict[str, str] | None = None,
        at: Callable[[], Any] = lambda: None,
    ) -> Answer:
        """Send a file of so many bytes; `at` is called before each piece of it is sent."""
        place = f"{session}/{file or UUID(int=next(numbers))}"
        pieces = body if body is not None else form(size)
        sent = {"content-length": str(size + AROUND)} if headers is None else headers

        async def receive() -> Message:
            await asyncio.sleep(0)
            if (waits := at()) is not None:
                await waits
            piece = next(pieces, b"")
            return {"type": "http.request", "body": piece, "more_body": bool(piece)}

        return await self.ask("PUT", place, sent, receive)

    async def ask(
        self,
        method: str,
        place: str,
        headers: dict[str, str] | None = None,
        body: Receive | None = None,
    ) -> Answer:
        session = place.partition("/")[0]
        about = {
            "accept": "",  # a script, which is answered with the sentence alone
            "content-type": "multipart/form-data; boundary=boundary",
            "cookie": f"{reader.COOKIE}={self.connected.get(session, '')}",
        }
        client = self.networks.get(session, "192.0.2.1")
        path = f"{upload_limits.UPLOADS}{place}"
        scope = scope_of(path, about | (headers or {}), method=method, client=client)
        answer = await asked(self.app, scope | {"app": self.app, "query_string": b""}, body=body)
        answer.text = answer.text.strip()
        return answer


def form(size: int) -> Iterator[bytes]:
    yield HEAD
    yield from (BLOCK for _ in range(size // len(BLOCK)))
    yield BLOCK[: size % len(BLOCK)] + TAIL


def open_world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Of a public server, to which the session "a" is connected."""
    monkeypatch.setenv(limits.PUBLIC, "1")
    world = World(MemoryUploadedFileManager("/_stcore/upload_file"), connected={"a": ""})
    monkeypatch.setattr(streamlit_patches, "is_connected", world.connected.__contains__)
    for name, played in {
        "cookies_of": lambda session: {reader.COOKIE: world.connected.get(session, "")},
        "forget_file": world.files.remove_file,
        "run_again": world.run.append,
    }.items():
        monkeypatch.setattr(streamlit_patches, name, played)
    monkeypatch.setattr(starlette_routes, "is_xsrf_enabled", lambda: False)
    return world


def bound(monkeypatch: pytest.MonkeyPatch, **most: int) -> None:
    """Set limits by their names."""
    for name, value in most.items():
        monkeypatch.setenv(f"EXPLORER_LIMIT_{name.upper()}", str(value))
