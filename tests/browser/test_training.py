"""Training in the page, to the end, and through everything that may interrupt it."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from playwright.sync_api import Browser, expect

from explorer.runs.run import Run
from explorer.runs.spec import DONE, PAUSED, STOPPED, TRAINING
from tests.browser.visiting import Visitor
from tests.served import Server, wait_until

LONG_TASK = "sort"
"""A task that trains long enough to be interrupted."""


def start(visitor: Visitor, runs: Path, task: str, steps: int | None = None) -> Run:
    """Pick the task in the address, press the button, and wait for the first steps."""
    visitor.open(f"/train?task={task}")
    if steps is not None:
        visitor.page.get_by_text(re.compile("^Optimizer · ")).click()
        visitor.fill("Steps", str(steps))
    visitor.widget("start_training").get_by_role("button").click()
    run = Run(runs / f"{task}-1")
    wait_until(lambda: run.folder.exists() and run.status().step > 0, "the first step")
    return run


def steps_on(run: Run, further: int = 20) -> None:
    """Wait until the run has gone on by so many steps."""
    now = run.status().step
    wait_until(lambda: run.status().step >= now + further, f"{further} further steps")


def press(visitor: Visitor, key: str) -> None:
    visitor.rest()
    visitor.widget(key).get_by_role("button").click()


def shows(visitor: Visitor, run: Run, state: str = "") -> None:
    """The page shows this run, in this state."""
    text = re.compile(f"{run.name} · .*{state}", re.IGNORECASE)
    expect(visitor.page.get_by_test_id("stMain").get_by_text(text).first).to_be_visible()


def has_every_step(run: Run) -> None:
    """Nothing of the curve was lost, nothing is there twice."""
    steps = [step for step, _ in run.metrics().losses()]
    assert steps == sorted(set(steps))
    assert len(steps) == steps[-1] - steps[0] + 1


def test_a_run_is_watched_interrupted_finished_and_opened(
    browser: Browser, fresh_server: Server
) -> None:
    """Through a reload, other pages, a pause, single steps and a stop, no step is lost."""
    visitor = Visitor(browser, fresh_server.url)
    visitor.open("/attention")
    visitor.drawn("attention_head")
    alone = [process.pid for process in fresh_server.leftovers()]
    assert alone == [fresh_server.pid], "who does not train has no processes for it"

    run = start(visitor, fresh_server.runs, LONG_TASK)
    visitor.page.reload()
    visitor.rest()
    shows(visitor, run, TRAINING)
    visitor.follow("Attention")
    visitor.drawn()
    steps_on(run)
    visitor.follow("Train")
    shows(visitor, run, TRAINING)
    press(visitor, "pause")
    wait_until(lambda: run.status().state == PAUSED, "the pause")
    shows(visitor, run, PAUSED)
    before = run.status().step
    press(visitor, "step")
    wait_until(lambda: run.status().step == before + 1, "one step")
    wait_until(lambda: run.status().state == PAUSED, "the pause again")
    shows(visitor, run, PAUSED)
    press(visitor, "resume")
    steps_on(run)
    press(visitor, "stop")
    wait_until(lambda: run.status().state == STOPPED, "the end of the run")
    shows(visitor, run, STOPPED)
    has_every_step(run)

    run = start(visitor, fresh_server.runs, "reverse", steps=40)
    shows(visitor, run)
    wait_until(lambda: run.status().state == DONE, "the end of the run")
    assert run.status().step == 40
    press(visitor, "open_run")
    visitor.titled("Attention")
    visitor.asks(model=run.name)
    visitor.rest()
    visitor.drawn("attention_head")
    visitor.follow("Checkpoints")
    expect(visitor.page.get_by_text(run.name).first).to_be_visible()
    visitor.no_mishap()
    visitor.close()


def test_a_killed_server_takes_no_run_with_it_and_an_orderly_end_leaves_no_process(
    browser: Browser, tmp_path: Path
) -> None:
    """Killed while it trains, then another ended by Ctrl-C, then a third by the system."""
    servers = [Server(tmp_path / "runs") for _ in range(3)]
    try:
        first, *later = servers
        first.start().wait()
        visitor = Visitor(browser, first.url)
        run = start(visitor, first.runs, LONG_TASK)
        first.kill()
        visitor.close()
        steps_on(run)
        for server, how in zip(later, (signal.SIGINT, signal.SIGTERM), strict=True):
            server.start().wait()
            visitor = Visitor(browser, server.url)
            visitor.open(f"/train?run={run.name}")
            shows(visitor, run)
            if run.status().state != TRAINING:  # the one before it was ended in good order
                press(visitor, "resume")
            wait_until(lambda: run.status().state == TRAINING, "the run to go on")
            steps_on(run)
            visitor.no_mishap()
            server.stop(how)
            visitor.close()
            wait_until(lambda server=server: not server.leftovers(), "the end of every process")  # type: ignore[misc]
            assert not server.tracebacks, server.tracebacks[0]
            assert run.status().can_resume
        has_every_step(run)
    finally:
        for server in servers:
            server.clear()
