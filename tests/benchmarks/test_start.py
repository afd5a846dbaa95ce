"""From the command to the first attention picture, beside importing torch and Streamlit."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from tests.benchmarks.figure import report
from tests.benchmarks.reader import Reader
from tests.served import Server

ROUNDS = 3
BAR = 2.0


def imports() -> float:
    """Seconds to import torch and Streamlit in a fresh process."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch, streamlit"], check=True)
    return time.perf_counter() - begun


async def first_picture(url: str) -> None:
    """Knock until somebody opens, and look until there is a picture."""
    reader = Reader(url)
    while True:
        try:
            await reader.open()
            break
        except OSError:
            await asyncio.sleep(0.02)
    try:
        answer = await reader.act()
        assert not answer.failures, answer.failures
        assert answer.picture()
    finally:
        await reader.close()


def start(runs: Path) -> float:
    """Seconds from the command to the data of the first picture."""
    server = Server(runs)
    begun = time.perf_counter()
    try:
        server.start()
        asyncio.run(asyncio.wait_for(first_picture(server.url), 90))
        return time.perf_counter() - begun
    finally:
        server.stop()
        server.clear()


def test_start_to_the_first_picture(tmp_path: Path) -> None:
    imports()
    start(tmp_path / "warm-disk")
    pairs = [(start(tmp_path / f"runs-{turn}"), imports()) for turn in range(ROUNDS)]
    ratio = median(app / bare for app, bare in pairs)
    report(
        "server start to the first picture",
        f"{median(app for app, _ in pairs):.2f} s, {ratio:.2f} times",
        f"{median(bare for _, bare in pairs):.2f} s for importing torch and Streamlit",
        f"{BAR:g} times",
    )
    assert ratio <= BAR
