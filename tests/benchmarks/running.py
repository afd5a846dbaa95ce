"""The running app by the clock: its start, a folder opened, training started, watched, stopped."""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from explorer.runs.cluster import Cluster
from explorer.runs.run import Run, create
from explorer.runs.spec import RunSpec
from explorer.tasks import TASKS
from explorer.views.training.live_run import EVERY, LAST, SLOWER
from tests import tiny
from tests.benchmarks.driver import a_browser, a_visitor, an_app, ask, seconds_on_a_core, visiting
from tests.benchmarks.measuring import Row, at_most, by_turns
from tests.browser.visiting import Visitor
from tests.reader import Reader
from tests.served import Server, wait_until, worker_of

SECONDS, SETTLE = 2 * SLOWER, 1.5
"""As many looks in every measurement, wherever it begins between two."""
EXACT = 0.99


def start() -> Iterator[Row]:
    """From the command to the data of the first picture, the disk warm."""
    (found,) = by_turns(seconds_of_start, seconds_of_imports, rounds=3)
    what, ours = "server start to the first picture", f"{found.ours:.2f} s"
    beside = f"{found.reference:.2f} s for importing torch and Streamlit"
    yield at_most(what, ours, beside, found.times, 1.3)


def seconds_of_imports() -> list[float]:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch, streamlit"], check=True)
    return [time.perf_counter() - begun]


def seconds_of_start() -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "runs")
        begun = time.perf_counter()
        try:
            server.start()
            asyncio.run(asyncio.wait_for(first_picture(server.url), 90))
            return [time.perf_counter() - begun]
        finally:
            server.stop()
            server.clear()


async def first_picture(url: str) -> None:
    """Knock until somebody opens, and look until there is a picture."""
    reader = Reader(url)
    while reader.socket is None:
        try:
            await reader.open()
        except OSError:
            await asyncio.sleep(0.02)
    assert (await ask(reader)).picture()
    await reader.close()


def heads_of_a_folder() -> Iterator[Row]:
    """From the command, with a folder that the reference library saved, to its heads on screen."""
    with tempfile.TemporaryDirectory() as folder, a_browser() as browser:
        bert = tiny.reference_bert(Path(folder) / "bert")
        begun = time.monotonic()
        app = an_app(env={"EXPLORER_MODELS": str(bert)})
        with app as server, a_visitor(browser, server) as visitor:
            visitor.open("/attention")
            visitor.drawn("overview")
            visitor.drawn("attention_head")
            seconds = time.monotonic() - begun
    what = "the command on a published folder to its heads on screen"
    yield Row(what, f"{seconds:.1f} s", goal="≤ 10 s", met=seconds <= 10)


def training_with_the_page_open() -> Iterator[Row]:
    """One run that never pauses; the page comes and goes."""
    with visiting() as (visitor, server):
        run = endless_run(visitor, server.runs)
        worker = worker_of(run)

        def watch() -> None:
            visitor.open(f"/training?run={run.name}")
            visitor.drawn("watched")

        watch()
        time.sleep((LAST + 1) * EVERY)  # the server has seen then how long a look takes here
        clock, core = by_turns(
            lambda: pace(run, worker, watch), lambda: pace(run, worker, visitor.leave), rounds=3
        )
        assert run.status().is_active, "the run ended before it was measured"
        visitor.open("/training")
    what, met = "live training with the page open", clock.times >= 0.9
    ours = f"{clock.ours:.0f} steps a second; {core.times:.2f} × by time on a core"
    beside = f"{clock.reference:.0f} of the same run with no page"
    yield Row(what, ours, beside, clock.times, "≥ 0.9 ×", met)


def endless_run(visitor: Visitor, runs: Path) -> Run:
    """A training that goes on until it is told to stop, on the server's own cluster."""
    visitor.open("/training")
    wait_until(lambda: (runs / ".cluster.json").exists(), "the training cluster")
    task = TASKS["reverse"]
    run = create(runs, RunSpec("reverse", task.model, task.training.replace(steps=1_000_000)))
    cluster = Cluster(runs)
    cluster.submit(run)
    cluster.close()
    wait_until(lambda: run.status().step > 20, "the first steps")
    return run


def pace(run: Run, worker: psutil.Process, begin: Callable[[], None]) -> list[float]:
    """Steps a second by the clock, and by the time that the training process had a core."""
    begin()
    time.sleep(SETTLE)
    metrics = run.metrics()
    first, begun, worked = metrics.rows[-1].step, time.monotonic(), seconds_on_a_core(worker)
    time.sleep(SECONDS)
    steps, seconds = metrics.update().rows[-1].step - first, time.monotonic() - begun
    return [steps / seconds, steps / (seconds_on_a_core(worker) - worked)]


def reverse_from_the_click() -> Iterator[Row]:
    with visiting() as (visitor, server):
        visitor.open("/training?task=reverse")
        wait_until(lambda: (server.runs / ".cluster.json").exists(), "the training cluster")
        begun = time.monotonic()
        visitor.widget("start_training").get_by_role("button").click()
        metrics = Run(server.runs / "reverse-1").metrics()
        wait_until(
            lambda: any(value >= EXACT for _, value in metrics.update().values()),
            f"{EXACT:g} exact",
            seconds=300,
        )
        seconds = time.monotonic() - begun
    steps = next(step for step, value in metrics.values() if value >= EXACT)
    what = f"reverse from the click to {EXACT:g} exact on held-out words"
    yield Row(what, f"{seconds:.1f} s, {steps} steps")
