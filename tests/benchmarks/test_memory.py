"""What a reader costs in memory, beside a bare Streamlit app that imports torch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.benchmarks.figure import report
from tests.benchmarks.reader import Reader
from tests.served import Server

BARE = """
import streamlit as st
import torch

st.title(torch.__version__)
"""
FURTHER = 20
FIRST_BAR = 1.5
FURTHER_BAR = 2.0
MEGABYTE = 1e6


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


async def one_and_further(server: Server, make: Callable[[], Reader], further: int) -> list[float]:
    """Megabytes with one reader, and with further ones beside it."""
    readers = [make() for _ in range(1 + further)]
    try:
        held = [await settled(server, readers[:1])]
        if further:
            held.append(await settled(server, readers[1:]))
    finally:
        for reader in readers:
            await reader.close()
    return held


def test_memory_of_readers(tmp_path: Path) -> None:
    script = tmp_path / "bare.py"
    script.write_text(BARE)
    with Server(tmp_path / "none", script=script) as server:
        (bare,) = asyncio.run(one_and_further(server, lambda: Reader(server.url), 0))
    with Server(tmp_path / "runs") as server:
        attention = lambda: Reader(server.url, page="attention")  # noqa: E731
        one, many = asyncio.run(one_and_further(server, attention, FURTHER))
    each = (many - one) / FURTHER
    report(
        "server memory with one reader",
        f"{one:.0f} MB, {one / bare:.2f} times",
        f"{bare:.0f} MB of a bare Streamlit app that imports torch",
        f"{FIRST_BAR} times",
    )
    report(
        "server memory of each further reader",
        f"{each:.2f} MB",
        f"one reader's {one:.0f} MB, with {FURTHER} further ones",
        f"{FURTHER_BAR:g} MB",
    )
    assert one / bare <= FIRST_BAR
    assert each <= FURTHER_BAR
