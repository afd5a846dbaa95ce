"""Figures for Prometheus, on a port of their own: EXPLORER_METRICS=9464, or 10.0.0.5:9464.

A port alone listens on this machine only. The figures are counts and seconds, and the names of
pages; they hold no address, no text and nobody's name.
"""

import os
import re
from collections.abc import Callable, Mapping

from prometheus_client import Counter, Gauge, start_http_server
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SETTING = "EXPLORER_METRICS"
HOST_AND_PORT = re.compile(r"(?:(?P<host>\[[0-9a-f:.]+\]|[A-Za-z0-9_.-]+):)?(?P<port>[0-9]{1,5})")
DEFAULT_HOST = "127.0.0.1"
HIGHEST_PORT = 65_535

REQUESTS = Counter("explorer_requests", "Answers of the server, by their status.", ["status"])
CONNECTIONS = Counter("explorer_connections", "Connections that pages have opened.")
READERS = Gauge("explorer_readers", "Pages that are connected now.")
DRAINING = Gauge("explorer_draining", "1 while the server accepts no new readers.")
GAUGES: Mapping[str, Gauge] = {"readers": READERS, "draining": DRAINING}


def host_and_port() -> tuple[str, int] | None:
    """Those of the setting; None if it is not set, ValueError if it is wrong."""
    value = os.environ.get(SETTING, "")
    if not value:
        return None
    match = HOST_AND_PORT.fullmatch(value)
    if match is None or not 0 < int(match["port"]) <= HIGHEST_PORT:
        raise ValueError(f"{SETTING} must be a port or host:port, not {value[:60]!r}.")
    return (match["host"] or DEFAULT_HOST).strip("[]"), int(match["port"])


def fault() -> str | None:
    """One sentence on what is wrong with the setting, for whoever starts the server."""
    try:
        host_and_port()
    except ValueError as error:
        return str(error)
    return None


def serve(**gauges: Callable[[], float]) -> Callable[[], None]:
    """Answer on the port, if one is set, until what this returns is called."""
    for name, value in gauges.items():
        GAUGES[name].set_function(value)
    address = host_and_port()
    if address is None:
        return lambda: None
    server, thread = start_http_server(address[1], address[0])

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return end


class RequestCounts:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_counted(message: Message) -> None:
            if message["type"] == "websocket.accept":
                CONNECTIONS.inc()
            elif message["type"] in {"http.response.start", "websocket.http.response.start"}:
                REQUESTS.labels(message["status"]).inc()
            await send(message)

        await self.app(scope, receive, send_counted)
