"""What readers cost the server: time of an answer, fifty at once, memory of each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from statistics import median

import psutil

from tests.benchmarks.places import BARE, a_page_of, an_app
from tests.benchmarks.ratio import Ratio
from tests.benchmarks.rows import Row, compared, milliseconds, quantile, spread
from tests.reader import Reader
from tests.served import Server

READERS, CHANGES, SETTLING = 50, 8, 2
"""Seconds for the first answer of everybody, who all ask for it at once."""
P95_GOAL = 0.250
ANSWERS, ROUNDS, ANSWER_GOAL = 20, 5, 5.0
IMPORTS_TORCH = """
import streamlit as st
import torch

st.title(torch.__version__)
"""
FURTHER, FIRST_GOAL, FURTHER_GOAL = 20, 1.5, 2.0
MEGABYTE = 1e6


def one_answer() -> Iterator[Row]:
    """Core time on both sides, by turns."""
    with a_page_of(BARE) as bare, an_app() as ours:
        pairs = [
            (
                asyncio.run(core_seconds(ours, "attention")),
                asyncio.run(core_seconds(bare, "")),
            )
            for _ in range(ROUNDS)
        ]
    mine, theirs = (median(side) for side in zip(*pairs, strict=True))
    measured = Ratio(mine, theirs, median(one / other for one, other in pairs))
    reference = "of a bare Streamlit page of as many elements"
    yield compared("server time of one answer, another head", measured, reference, ANSWER_GOAL)


async def core_seconds(server: Server, page: str) -> float:
    """What one answer costs the server on a core, one reader changing heads alone."""
    reader = Reader(server.url, page=page)
    await reader.open()
    await reader.act()
    spent = psutil.Process(server.pid).cpu_times()
    for turn in range(ANSWERS):
        await reader.pick_head((turn + 1) % 2)
    now = psutil.Process(server.pid).cpu_times()
    await reader.close()
    return (now.user + now.system - spent.user - spent.system) / ANSWERS


def fifty() -> Iterator[Row]:
    """Each changes the head once a second; beside one who does the same alone."""
    with an_app() as server:
        alone, together = asyncio.run(crowds_of(server))
    p95, reference = quantile(together, 0.95), quantile(alone, 0.95)
    yield Row(
        f"{READERS} readers changing heads once a second",
        spread(together),
        f"p95 {milliseconds(reference)} of one reader",
        p95 / reference,
        f"p95 ≤ {milliseconds(P95_GOAL)}",
        p95 <= P95_GOAL,
    )


async def crowds_of(server: Server) -> tuple[list[float], list[float]]:
    """Seconds of every answer: to one reader alone, then to all of them."""
    readers = [Reader(server.url, page="attention") for _ in range(READERS)]
    try:
        for reader in readers:
            await reader.open()
            answer = await reader.act()
            assert not answer.failures, answer.failures[0]
        return await crowd_of(readers[:1]), await crowd_of(readers)
    finally:
        for reader in readers:
            await reader.close()


async def crowd_of(readers: list[Reader]) -> list[float]:
    """Each with a websocket of their own, spread over the second."""
    begin = asyncio.get_running_loop().time() + SETTLING
    places = (begin + place / len(readers) for place in range(len(readers)))
    lived = await asyncio.gather(*map(read, readers, places))
    return [seconds for one in lived for seconds in one]


async def read(reader: Reader, begin: float) -> list[float]:
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
    yield Row(
        "server memory with one reader",
        f"{one:.0f} MB",
        f"{bare:.0f} MB of a bare Streamlit app that imports torch",
        one / bare,
        f"≤ {FIRST_GOAL:g} ×",
        one / bare <= FIRST_GOAL,
    )
    each = (many - one) / FURTHER
    yield Row(
        f"server memory of each further reader, {FURTHER} of them",
        f"{each:.2f} MB",
        f"{one:.0f} MB with one reader",
        each / one,
        f"≤ {FURTHER_GOAL:g} MB",
        each <= FURTHER_GOAL,
    )


async def one_and_further(server: Server, page: str, further: int) -> tuple[float, float]:
    """Megabytes with one reader, and with further ones beside it."""
    readers = [Reader(server.url, page=page) for _ in range(1 + further)]
    try:
        return await settled(server, readers[:1]), await settled(server, readers[1:])
    finally:
        for reader in readers:
            await reader.close()


async def settled(server: Server, readers: list[Reader]) -> float:
    """Megabytes the server process holds once these readers have looked around."""
    for reader in readers:
        await reader.open()
        await reader.act()
        if reader.page:
            for head in (1, 0, 1, 0):
                await reader.pick_head(head)
    await asyncio.sleep(1)
    return float(psutil.Process(server.pid).memory_info().rss) / MEGABYTE
