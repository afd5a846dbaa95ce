"""A server that is to end says so, and its readers go elsewhere first."""

import asyncio
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

from explorer.server.graceful_shutdown import SHUTTING_DOWN, Drain, GracefulShutdown
from tests.calls import run_in_thread
from tests.served import ROOT, free_port, wait_until
from tests.server.asking import Answer, Inside, ask, scope_of

APP = """
import sys
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute

from explorer.server.graceful_shutdown import Drain, GracefulShutdown

drain = Drain()

@asynccontextmanager
async def lifespan(app):
    drain.wait_for_sigterm()
    yield
    print("in order", flush=True)

async def stream(socket):
    await socket.accept()
    async for message in socket.iter_text():
        await socket.send_text(message)

app = Starlette(routes=[WebSocketRoute("/_stcore/stream", stream)], lifespan=lifespan)
uvicorn.run(GracefulShutdown(app, drain), port=int(sys.argv[1]), log_level="error")
"""


def status_of(url: str) -> int:
    """Of the answer; 0 where nobody listens."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@contextmanager
def running(folder: Path, seconds: int) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A small server with the part that drains."""
    script = folder / "server.py"
    script.write_text(APP)
    port = free_port()
    environment = {"PYTHONPATH": str(ROOT), "EXPLORER_LIMIT_DRAIN_SECONDS": str(seconds)}
    command = [sys.executable, str(script), str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        wait_until(lambda: status_of(f"http://127.0.0.1:{port}/healthz") == 200, "the server")
        yield process, port
    finally:
        process.kill()
        process.wait()


def test_it_ends_when_its_readers_have_gone_elsewhere(tmp_path: Path) -> None:
    async def two_readers(process: subprocess.Popen[bytes], port: int) -> list[int]:
        line = f"ws://127.0.0.1:{port}/_stcore/stream"
        async with connect(line) as first, connect(line) as second:
            for reader in (first, second):
                await reader.send("here")
                assert await reader.recv() == "here"
            process.send_signal(signal.SIGTERM)
            codes = []
            for reader in (first, second):
                with pytest.raises(ConnectionClosedError) as closed:
                    await reader.recv()
                codes.append(closed.value.rcvd.code if closed.value.rcvd else 0)
            return codes

    with running(tmp_path, seconds=0) as (process, port):
        assert run_in_thread(two_readers(process, port)) == [1012, 1012]
        process.wait()
    assert (tmp_path / "log").read_text().endswith("in order\n")


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    async def one_of_two_stays(process: subprocess.Popen[bytes], port: int) -> None:
        line = f"ws://127.0.0.1:{port}/_stcore/stream"
        async with connect(line) as first, connect(line):
            process.send_signal(signal.SIGTERM)
            await first.wait_closed()
            assert await asyncio.to_thread(status_of, f"http://127.0.0.1:{port}/healthz") == 503
            process.send_signal(signal.SIGTERM)

    with running(tmp_path, seconds=3_600) as (process, port):
        run_in_thread(one_of_two_stays(process, port))
        process.wait()
    assert (tmp_path / "log").read_text().endswith("in order\n")


def ask_where_it_drains(*request: Any, **named: Any) -> Answer:
    drain = Drain()
    drain.has_begun = True
    return ask(GracefulShutdown(Inside(), drain), scope_of(*request, **named))


def test_health_is_what_a_proxy_has_to_know() -> None:
    well = ask(GracefulShutdown(Inside(), Drain()), scope_of("/healthz", {"host": "any"}))
    assert (well.status, well.text) == (200, "ok\n")
    ending = ask_where_it_drains("/healthz")
    assert (ending.status, ending.text) == (503, "draining\n")


def test_who_comes_is_sent_elsewhere_and_who_is_here_gets_what_belongs_to_the_page() -> None:
    for path, kind in (("/", "http"), ("/attention", "http"), ("/_stcore/health", "http"),
                       ("/any", "websocket")):  # fmt: skip
        said = ask_where_it_drains(path, kind=kind)
        assert (said.status, said.sentence) == (503, SHUTTING_DOWN), path
        assert said.headers["retry-after"] == "5"
    for path in ("/media/a.csv", "/_stcore/upload_file/a/b", "/static/js/a.js"):
        assert ask_where_it_drains(path).text == "inside", path


def test_what_the_app_says_to_a_closed_line_goes_nowhere() -> None:
    heard: list[Message] = []

    async def talk() -> None:
        drain = Drain()

        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await drain.close_sockets()
            await send({"type": "websocket.send", "text": "too late"})

        async def send(message: Message) -> None:
            heard.append(message)

        await GracefulShutdown(app, drain)(scope_of(kind="websocket"), send, send)  # type: ignore[arg-type]
        assert not drain.sockets

    run_in_thread(talk())
    assert heard == [{"type": "websocket.close", "code": 1012}]
