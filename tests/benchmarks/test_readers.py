"""Fifty readers who change the head once a second, beside one who does the same alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.figure import milliseconds, quantile, report
from tests.benchmarks.reader import Reader
from tests.served import Server

READERS = 50
CROWDS = 3
SECONDS = 10
BAR = 0.250


@dataclass
class Crowd:
    """What a number of readers lived through together."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def p95(self) -> float:
        return quantile(self.seconds, 0.95)

    def __str__(self) -> str:
        return f"p50 {milliseconds(quantile(self.seconds, 0.5))}, p95 {milliseconds(self.p95)}"


async def read(reader: Reader, begin: float, crowd: Crowd) -> None:
    """Change the head once a second, and wait for the picture of every head."""
    now = asyncio.get_running_loop().time
    seen = (await reader.pick_head(0)).picture()
    for turn in range(SECONDS):
        await asyncio.sleep(max(0.0, begin + turn - now()))
        answer = await reader.pick_head((turn + 1) % 2)
        crowd.seconds.append(answer.seconds)
        crowd.failures += answer.failures
        picture = answer.picture()
        if picture == seen:
            crowd.failures.append("the picture did not change with the head")
        seen = picture


async def crowd_of(count: int, url: str) -> Crowd:
    """So many readers, each with a websocket of their own, spread over the second."""
    crowd = Crowd()
    readers = [Reader(url, page="attention") for _ in range(count)]
    try:
        for reader in readers:
            await reader.open()
            crowd.failures += (await reader.act()).failures
        begin = asyncio.get_running_loop().time() + 2
        shares = (begin + place / count for place in range(count))
        await asyncio.gather(
            *(read(reader, share, crowd) for reader, share in zip(readers, shares, strict=True))
        )
    finally:
        for reader in readers:
            await reader.close()
    return crowd


def test_fifty_readers(tmp_path: Path) -> None:
    """Three crowds in turn; the middle one counts, whatever a neighbour did meanwhile."""
    with Server(tmp_path / "runs") as server:
        alone = asyncio.run(crowd_of(1, server.url))
        crowds = [asyncio.run(crowd_of(READERS, server.url)) for _ in range(CROWDS)]
        assert not server.tracebacks, server.tracebacks[0]
    together = sorted(crowds, key=lambda crowd: crowd.p95)[CROWDS // 2]
    report(
        f"{READERS} readers changing heads once a second",
        f"{together} (p95 of each crowd: {', '.join(milliseconds(each.p95) for each in crowds)})",
        f"one reader with {alone}",
        f"p95 {milliseconds(BAR)} and no error",
    )
    assert not [failure for crowd in (alone, *crowds) for failure in crowd.failures]
    assert together.p95 <= BAR
