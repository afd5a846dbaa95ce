"""Fifty readers who change the head once a second, beside one who does the same alone."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psutil

from tests.benchmarks.figure import milliseconds, quantile, report
from tests.benchmarks.presence import Presence
from tests.benchmarks.reader import Reader
from tests.served import Server

READERS = 50
CROWDS = 24
COUNTED = 2
CHANGES = 4
BAR = 0.250
FILLED = 0.75
"""The share of a core that the answers to one crowd take at most; else they queue for ever."""
CROWDED = 1.4
"""How much more of a core an answer takes within a crowd than alone, on a slow machine."""
WITHHELD = 0.05
"""The share of the time that the machine may be away before a crowd says nothing."""
SETTLING = 2
"""Seconds, of the machine's pace, for the first answer of everybody, who all ask it at once."""
ANSWERS = 20
COST_BAR = 5.0
ELEMENTS = 24
BARE = f"""
import streamlit as st

for line in range({ELEMENTS} - 1):
    st.text(line)
st.segmented_control("Head", ["0", "1"], key="head")
"""
"""A page of as many elements as ours, which does nothing."""


@dataclass
class Crowd:
    """What a number of readers lived through together."""

    pace: float
    withheld: float = 0.0
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def p95(self) -> float:
        return quantile(self.seconds, 0.95)

    def __str__(self) -> str:
        return f"p50 {milliseconds(quantile(self.seconds, 0.5))}, p95 {milliseconds(self.p95)}"


async def read(reader: Reader, begin: float, crowd: Crowd) -> None:
    """Change the head once a second (of the machine's pace), and wait for every picture."""
    now = asyncio.get_running_loop().time
    seen = (await reader.pick_head(0)).picture()
    for turn in range(CHANGES):
        await asyncio.sleep(max(0.0, begin + turn * crowd.pace - now()))
        answer = await reader.pick_head((turn + 1) % 2)
        crowd.seconds.append(answer.seconds)
        crowd.failures += answer.failures
        picture = answer.picture()
        if picture == seen:
            crowd.failures.append("the picture did not change with the head")
        seen = picture


async def crowd_of(readers: list[Reader], presence: Presence, pace: float = 1.0) -> Crowd:
    """Each with a websocket of their own, spread over the second."""
    crowd = Crowd(pace)
    called = time.monotonic()
    begin = asyncio.get_running_loop().time() + SETTLING * pace
    shares = (begin + place / len(readers) * pace for place in range(len(readers)))
    await asyncio.gather(
        *(read(reader, share, crowd) for reader, share in zip(readers, shares, strict=True))
    )
    crowd.withheld = presence.missing(called, time.monotonic())
    return crowd


async def crowds_of(server: Server, presence: Presence) -> tuple[Crowd, list[Crowd]]:
    """One reader alone; then crowds, until enough of them had the machine."""
    readers = [Reader(server.url, page="attention") for _ in range(READERS)]
    crowds: list[Crowd] = []
    try:
        for reader in readers:
            await reader.open()
            answer = await reader.act()
            assert not answer.failures, answer.failures[0]
        alone = await crowd_of(readers[:1], presence)
        while len(crowds) < CROWDS and len(present(crowds)) < COUNTED:
            cost = await core_seconds(server, "attention")
            crowds.append(await crowd_of(readers, presence, pace_of(cost)))
    finally:
        for reader in readers:
            await reader.close()
    return alone, crowds


def present(crowds: list[Crowd]) -> list[Crowd]:
    """The crowds during which the machine was there."""
    return [crowd for crowd in crowds if crowd.withheld <= WITHHELD]


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


def pace_of(cost: float) -> float:
    """In how many seconds all readers of a crowd can be answered, one where the machine is free.

    Fifty answers of 15 ms fill three quarters of a core. Where neighbours slow it down, nobody
    can give them in a second, so the readers then ask as often as the machine has time for.
    Where the server is nearly full, one that stops for a moment never catches up again: so
    there an answer is counted with what it costs within a crowd.
    That a slower app is not given more time, the other test sees to.
    """
    filled = READERS * cost / FILLED
    return filled * CROWDED if filled > 1 else 1.0


def told(crowd: Crowd) -> str:
    return (
        f"{milliseconds(crowd.p95)} at one change in {crowd.pace:.1f} s"
        f" with {crowd.withheld:.0%} of the machine withheld"
    )


def test_an_answer_beside_a_bare_page(tmp_path: Path) -> None:
    """Core time on both sides, by turns: it does not depend on how fast the machine is."""
    script = tmp_path / "bare.py"
    script.write_text(BARE)
    with Server(tmp_path / "none", script=script) as bare, Server(tmp_path / "runs") as ours:
        pairs = [
            (
                asyncio.run(core_seconds(ours, "attention")),
                asyncio.run(core_seconds(bare, "")),
            )
            for _ in range(5)
        ]
    times = median(mine / theirs for mine, theirs in pairs)
    report(
        "server time of one answer, another head",
        f"{milliseconds(median(mine for mine, _ in pairs))}, {times:.2f} ×",
        f"{milliseconds(median(theirs for _, theirs in pairs))} of a bare Streamlit page of as "
        "many elements",
        f"{COST_BAR} ×",
    )
    assert times <= COST_BAR


def test_fifty_readers(tmp_path: Path) -> None:
    """The crowds are chosen by what the host withheld, never by how they came out.

    One that asks for three quarters of a core cannot be answered in time by a machine that is
    not there: p95 was 3.7 s with 45 % of it withheld, and 27 ms with 1 %, a minute later.
    """
    with Server(tmp_path / "runs") as server, Presence() as presence:
        alone, crowds = asyncio.run(crowds_of(server, presence))
        assert not server.tracebacks, server.tracebacks[0]
    counted = sorted(crowds, key=lambda crowd: crowd.withheld)[:COUNTED]
    together = Crowd(median(crowd.pace for crowd in counted))
    together.seconds = [seconds for crowd in counted for seconds in crowd.seconds]
    report(
        f"{READERS} readers changing heads once a second",
        f"{together} (p95 of each crowd: {', '.join(map(told, crowds))})",
        f"one reader with {alone}",
        f"p95 {milliseconds(BAR)} and no error",
    )
    assert not [failure for crowd in (alone, *crowds) for failure in crowd.failures]
    assert together.p95 <= BAR
