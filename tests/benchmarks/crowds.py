"""Many readers at once: a hundred at two replicas behind the proxy, and two hundred who look on."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from tests import proxy
from tests.benchmarks import measuring
from tests.benchmarks.measuring import NotMeasured, Row, milliseconds, quantile
from tests.benchmarks.places import an_app
from tests.benchmarks.readers import MEGABYTE, crowd_of, readers_of
from tests.proxy import Replicas
from tests.served import Server

AT_REPLICAS, REPLICAS_P95 = 100, 0.250
CONNECTED, ACTIVE, ACTIVE_P95, MOST_MEGABYTES = 200, 20, 0.150, 350


def replicas() -> Iterator[Row]:
    """A hundred readers, each of whom changes the head once a second."""
    try:
        proxy.ensure()
    except proxy.NoNginx as error:
        raise NotMeasured(str(error)) from error
    with two_replicas() as both:
        seconds = asyncio.run(crowd_at(both.url, AT_REPLICAS, AT_REPLICAS))
    p95, goal = quantile(seconds, 0.95), f"p95 ≤ {milliseconds(REPLICAS_P95)}"
    what = f"{AT_REPLICAS} readers changing heads once a second, two replicas behind nginx"
    yield Row(what, measuring.spread(seconds), goal=goal, met=p95 <= REPLICAS_P95)


@contextmanager
def two_replicas() -> Iterator[Replicas]:
    """They share a folder of runs, which is gone afterwards; no run of a page may fail."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        servers = [Server(folder / "runs", env=proxy.SHARED) for _ in range(2)]
        for server in servers:
            stack.enter_context(server)
        yield stack.enter_context(proxy.before(servers, folder / "proxy"))
        for server in servers:
            assert not server.tracebacks, server.tracebacks[0]


async def crowd_at(url: str, connected: int, active: int) -> list[float]:
    """Seconds of every answer to those who are active."""
    async with readers_of(url, "attention", connected) as readers:
        return await crowd_of(readers[:active])


def connected() -> Iterator[Row]:
    """Two hundred have the page open, and twenty of them change the head once a second."""
    with an_app() as server:
        seconds, megabytes = asyncio.run(crowd_and_memory(server))
    who = f"{CONNECTED} readers connected, {ACTIVE} of them changing heads once a second"
    p95, goal = quantile(seconds, 0.95), f"p95 ≤ {milliseconds(ACTIVE_P95)}"
    yield Row(who, measuring.spread(seconds), goal=goal, met=p95 <= ACTIVE_P95)
    met = megabytes <= MOST_MEGABYTES
    yield Row(
        "the same: server memory", f"{megabytes:.0f} MB", goal=f"≤ {MOST_MEGABYTES} MB", met=met
    )


async def crowd_and_memory(server: Server) -> tuple[list[float], float]:
    """Seconds of every answer, and the megabytes of the server while all are still there."""
    async with readers_of(server.url, "attention", CONNECTED) as readers:
        seconds = await crowd_of(readers[:ACTIVE])
        return seconds, psutil.Process(server.pid).memory_info().rss / MEGABYTE
