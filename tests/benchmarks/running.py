"""The running app by the clock: its start, a folder opened, training watched and waited for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
from playwright.sync_api import Browser

from explorer.runs.cluster import Cluster
from explorer.runs.run import Run, create
from explorer.runs.spec import RunSpec
from explorer.tasks import TASKS
from explorer.training.live import EVERY, LAST, SELDOM
from tests import zoo
from tests.benchmarks.places import a_browser, a_visitor, an_app
from tests.benchmarks.rows import Row
from tests.browser.visiting import Visitor
from tests.reader import Reader
from tests.served import Server, wait_until, worker_of

STARTS, START_GOAL = 3, 2.0
NEWCOMER_GOAL = 10.0
ROUNDS, WATCHED_GOAL = 3, 0.9
SECONDS = 2 * SELDOM
"""As many looks in every measurement, wherever it begins between two."""
SETTLE = 1.5
EXACT = 0.99


def start() -> Iterator[Row]:
    """From the command to the data of the first picture, the disk warm."""
    seconds_of_imports()
    seconds_of_start()
    pairs = [(seconds_of_start(), seconds_of_imports()) for _ in range(STARTS)]
    times = median(app / bare for app, bare in pairs)
    yield Row(
        "server start to the first picture",
        f"{median(app for app, _ in pairs):.2f} s",
        f"{median(bare for _, bare in pairs):.2f} s for importing torch and Streamlit",
        times,
        f"≤ {START_GOAL:g} ×",
        times <= START_GOAL,
    )


def seconds_of_imports() -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch, streamlit"], check=True)
    return time.perf_counter() - begun


def seconds_of_start() -> float:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "runs")
        begun = time.perf_counter()
        try:
            server.start()
            asyncio.run(asyncio.wait_for(first_picture(server.url), 90))
            return time.perf_counter() - begun
        finally:
            server.stop()
            server.clear()


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


def heads_of_a_folder() -> Iterator[Row]:
    """From the command, with a folder that the reference library saved, to its heads on screen."""
    with tempfile.TemporaryDirectory() as folder, a_browser() as browser:
        bert = zoo.bert(Path(folder) / "bert")
        begun = time.monotonic()
        with (
            an_app(env={"EXPLORER_MODELS": str(bert)}) as server,
            a_visitor(browser, server) as visitor,
        ):
            visitor.open("/attention")
            visitor.drawn("overview")
            visitor.drawn("attention_head")
            seconds = time.monotonic() - begun
    yield Row(
        "the command on a published folder to its heads on screen",
        f"{seconds:.1f} s",
        goal=f"≤ {NEWCOMER_GOAL:g} s",
        met=seconds <= NEWCOMER_GOAL,
    )


@dataclass(frozen=True)
class Pace:
    """Steps by the clock, and by the time that the training process had a core."""

    by_clock: float
    by_core: float


def training_with_the_page_open() -> Iterator[Row]:
    """One run that never pauses; the page comes and goes, the order turned every round."""
    opened: list[Pace] = []
    closed: list[Pace] = []
    with a_browser() as browser, an_app() as server, a_visitor(browser, server) as visitor:
        run = endless_run(visitor, server.runs)
        worker = worker_of(run)
        visitor.open(f"/train?run={run.name}")
        visitor.drawn("watched")
        time.sleep((LAST + 1) * EVERY)  # the server has seen then how long a look takes here
        for turn in range(ROUNDS):
            for is_open in (True, False) if turn % 2 else (False, True):
                if is_open:
                    visitor.open(f"/train?run={run.name}")
                    visitor.drawn("watched")
                else:
                    visitor.leave()
                (opened if is_open else closed).append(pace(run, worker))
        assert run.status().is_active, "the run ended before it was measured"
        visitor.open("/train")
    both = list(zip(opened, closed, strict=True))
    clock = median(o.by_clock / c.by_clock for o, c in both)
    core = median(o.by_core / c.by_core for o, c in both)
    yield Row(
        "live training with the page open",
        f"{median(o.by_clock for o in opened):.0f} steps a second; {core:.2f} × by time on a core",
        f"{median(c.by_clock for c in closed):.0f} of the same run with no page",
        clock,
        f"≥ {WATCHED_GOAL:g} ×",
        clock >= WATCHED_GOAL,
    )


def endless_run(visitor: Visitor, runs: Path) -> Run:
    """A training that goes on until it is told to stop, on the server's own cluster."""
    visitor.open("/train")
    wait_until(lambda: (runs / ".cluster.json").exists(), "the training cluster")
    task = TASKS["reverse"]
    run = create(runs, RunSpec("reverse", task.model, task.training.replace(steps=1_000_000)))
    cluster = Cluster(runs)
    cluster.submit(run)
    cluster.close()
    wait_until(lambda: run.status().step > 20, "the first steps")
    return run


def pace(run: Run, worker: psutil.Process) -> Pace:
    """The run's pace over the next seconds."""
    time.sleep(SETTLE)
    metrics = run.metrics()
    first, begun, worked = metrics.rows[-1].step, time.monotonic(), seconds_on_a_core(worker)
    time.sleep(SECONDS)
    steps, seconds = metrics.update().rows[-1].step - first, time.monotonic() - begun
    return Pace(steps / seconds, steps / (seconds_on_a_core(worker) - worked))


def seconds_on_a_core(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def reverse_from_the_click() -> Iterator[Row]:
    with a_browser() as browser, an_app() as server:
        yield waited(browser, server)


def waited(browser: Browser, server: Server) -> Row:
    with a_visitor(browser, server) as visitor:
        visitor.open("/train?task=reverse")
        wait_until(lambda: (server.runs / ".cluster.json").exists(), "the training cluster")
        clicked = time.monotonic()
        visitor.widget("start_training").get_by_role("button").click()
        run = Run(server.runs / "reverse-1")
        metrics = run.metrics()
        wait_until(
            lambda: any(value >= EXACT for _, value in metrics.update().values()),
            f"{EXACT:g} exact",
            seconds=300,
        )
        seconds = time.monotonic() - clicked
    steps = next(step for step, value in metrics.values() if value >= EXACT)
    return Row(
        f"reverse from the click to {EXACT:g} exact on held-out words",
        f"{seconds:.1f} s, {steps} steps",
    )
