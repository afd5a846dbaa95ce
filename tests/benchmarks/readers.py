"""What readers cost the server: time of an answer, fifty at once, memory of each."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import psutil

from tests.benchmarks import measuring
from tests.benchmarks.measuring import Row, by_turns, milliseconds, quantile
from tests.benchmarks.places import BARE, a_page_of, an_app
from tests.reader import Reader
from tests.served import Server

READERS, CHANGES, SETTLING = 50, 8, 2
"""Seconds for the first answer of everybody, who all ask for it at once."""
P95_GOAL = 0.150
ANSWERS, FURTHER = 20, 20
MEGABYTE = 1e6
LINES, OTHERS = "range(21)", 3
"""Of the bare page: its lines of text, and its other elements."""
IMPORTS_TORCH = """
import streamlit as st
import torch

st.title(torch.__version__)
"""


@asynccontextmanager
async def readers_of(url: str, page: str, count: int) -> AsyncIterator[list[Reader]]:
    """So many, each with a websocket of their own, who have seen the page."""
    readers = [Reader(url, page=page) for _ in range(count)]
    try:
        for reader in readers:
            await reader.open()
            answer = await reader.act()
            assert not answer.failures, answer.failures[0]
        yield readers
    finally:
        for reader in readers:
            await reader.close()


def one_answer() -> Iterator[Row]:
    """Core time on both sides, by turns."""
    with an_app() as ours, a_bare_page_like(ours) as bare:
        (found,) = by_turns(
            lambda: [asyncio.run(core_seconds(ours, "attention"))],
            lambda: [asyncio.run(core_seconds(bare, ""))],
            rounds=5,
        )
    reference = "of a bare Streamlit page of as many elements"
    yield measuring.compared("server time of one answer, another head", found, reference, 2.0)


@contextmanager
def a_bare_page_like(server: Server) -> Iterator[Server]:
    """It has as many elements as Attention maps, with the navigation and the bar."""

    async def elements() -> int:
        async with readers_of(server.url, "attention", 1) as (reader,):
            return len((await reader.act()).elements)

    lines = f"range({asyncio.run(elements()) - OTHERS})"
    with a_page_of(BARE.replace(LINES, lines)) as bare:
        yield bare


async def core_seconds(server: Server, page: str) -> float:
    """What one answer costs the server on a core, one reader changing heads alone."""
    process = psutil.Process(server.pid)
    async with readers_of(server.url, page, 1) as (reader,):
        before = process.cpu_times()
        for turn in range(ANSWERS):
            await reader.pick_head((turn + 1) % 2)
        after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / ANSWERS


def fifty() -> Iterator[Row]:
    """Each changes the head once a second; beside one who does the same alone."""
    with an_app() as server:
        alone, together = asyncio.run(crowds_of(server))
    p95, reference = quantile(together, 0.95), quantile(alone, 0.95)
    what = f"{READERS} readers changing heads once a second"
    beside, goal = f"p95 {milliseconds(reference)} of one reader", f"p95 ≤ {milliseconds(P95_GOAL)}"
    yield Row(what, measuring.spread(together), beside, p95 / reference, goal, p95 <= P95_GOAL)


async def crowds_of(server: Server) -> tuple[list[float], list[float]]:
    """Seconds of every answer: to one reader alone, then to all of them."""
    async with readers_of(server.url, "attention", READERS) as readers:
        return await crowd_of(readers[:1]), await crowd_of(readers)


async def crowd_of(readers: list[Reader]) -> list[float]:
    """They begin spread over the second."""
    begin = asyncio.get_running_loop().time() + SETTLING
    places = (begin + place / len(readers) for place in range(len(readers)))
    lived = await asyncio.gather(*map(changing_heads, readers, places))
    return [seconds for one in lived for seconds in one]


async def changing_heads(reader: Reader, begin: float) -> list[float]:
    """Change the head once a second, and wait for every picture."""
    now, taken = asyncio.get_running_loop().time, []
    seen = (await reader.pick_head(0)).picture()
    for turn in range(CHANGES):
        await asyncio.sleep(max(0.0, begin + turn - now()))
        answer = await reader.pick_head((turn + 1) % 2)
        assert not answer.failures, answer.failures[0]
        assert answer.picture() != seen, "the picture did not change with the head"
        seen = answer.picture()
        taken.append(answer.seconds)
    return taken


def memory() -> Iterator[Row]:
    """Beside a bare Streamlit app that imports torch; then what each further reader adds."""
    with a_page_of(IMPORTS_TORCH) as server:
        bare, _ = asyncio.run(one_and_further(server, "", 0))
    with an_app() as server:
        one, many = asyncio.run(one_and_further(server, "attention", FURTHER))
    reference = f"{bare:.0f} MB of a bare Streamlit app that imports torch"
    yield measuring.at_most(
        "server memory with one reader", f"{one:.0f} MB", reference, one / bare, 1.5
    )
    each, what = (many - one) / FURTHER, f"server memory of each further reader, {FURTHER} of them"
    beside = f"{one:.0f} MB with one reader"
    yield Row(what, f"{each:.2f} MB", beside, each / one, "≤ 2 MB", each <= 2)


async def one_and_further(server: Server, page: str, further: int) -> tuple[float, float]:
    """Megabytes with one reader, and with further ones beside it."""
    async with readers_of(server.url, page, 1) as first:
        one = await looked_around(server, first)
        async with readers_of(server.url, page, further) as others:
            return one, await looked_around(server, others)


async def looked_around(server: Server, readers: list[Reader]) -> float:
    """Megabytes that the server process holds once these readers have seen both heads twice."""
    for reader in readers:
        for head in (1, 0, 1, 0) if reader.page else ():
            await reader.pick_head(head)
    await asyncio.sleep(1)  # what the answers left behind is freed meanwhile
    return float(psutil.Process(server.pid).memory_info().rss) / MEGABYTE
